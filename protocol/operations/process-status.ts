import { z } from 'zod';
import type { Operation } from '../operation.ts';
import { processId, processState, termination } from './process-fields.ts';

/**
 * Tells whether a process runs, or how it ended.
 * Source: specification, Agent contract, "Processes".
 */
export const processStatus = {
  route: '/v1/process/status',
  effect: 'read',
  params: z.strictObject({ processId }),
  result: z.strictObject({
    state: processState,
    tty: z.boolean(),
    startedAt: z.iso.datetime(),
    termination: termination.nullable(),
  }),
  streams: [],
  asRoot: 'looks at the handle',
  asUser: 'nothing',
  audit: 'process.status',
  poll: true,
  secrets: [],
  errors: ['process_not_found'],
  timeLimitMs: () => 0,
} as const satisfies Operation;
