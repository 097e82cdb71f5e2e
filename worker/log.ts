/**
 * Purpose: the worker's log.
 * Rights: none of its own; descriptor 2 is init's.
 * Called by: main.ts.
 * Fails: by dropping lines; it never makes the worker wait.
 */
import { type Logger, pino } from 'pino';
import { logQueueBytesMax } from '../protocol/limits.ts';

/** The service's log: JSON on stderr. A reader that stalls costs a bounded queue, then lines; never a wait. */
export const makeLog = (level: string): Logger =>
  pino(
    { level, base: { process: 'worker' } },
    pino.destination({ dest: 2, sync: false, minLength: 0, maxLength: logQueueBytesMax }),
  );
