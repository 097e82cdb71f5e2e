import { z } from 'zod';
import { processGraceMs } from '../limits.ts';
import type { Operation } from '../operation.ts';
import { processId, processSignal, termination } from './process-fields.ts';

/**
 * Ends a process with all that it started, or sends it a signal. Of one that has ended it tells how.
 * Source: specification, Agent contract, "Processes".
 */
export const processTerminate = {
  route: '/v1/process/terminate',
  effect: 'mutate',
  params: z.strictObject({ processId, signal: processSignal.optional() }),
  /** null when a signal was sent and it still runs. */
  result: z.strictObject({ termination: termination.nullable() }),
  streams: [],
  asRoot: 'tells the supervisor',
  asUser: 'killers with the user’s effective uid send the signals',
  audit: 'process.terminate',
  secrets: [],
  errors: ['process_not_found', 'kill_incomplete', 'uncertain'],
  timeLimitMs: () => processGraceMs,
} as const satisfies Operation;
