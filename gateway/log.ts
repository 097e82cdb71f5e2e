import { once } from 'node:events';
import pino, { type Logger } from 'pino';
import { logQueueBytesMax } from '../protocol/limits.ts';

/** The log and its end. */
export interface Log {
  readonly log: Logger;
  /** Ends the log; resolves when all of it has been written. The caller bounds the wait: a reader may have stalled. */
  end(): Promise<unknown>;
}

/**
 * Opens the log: JSON lines on a descriptor, written asynchronously. A reader that stalls makes it drop lines
 * at `logQueueBytesMax` instead of blocking the service or eating its memory.
 */
export const openLog = (level: string, descriptor = 2): Log => {
  const destination = pino.destination({ dest: descriptor, sync: false, minLength: 0, maxLength: logQueueBytesMax });
  return {
    log: pino({ level, base: { process: 'gateway' } }, destination),
    end() {
      const closed = once(destination, 'close');
      destination.end();
      return closed;
    },
  };
};
