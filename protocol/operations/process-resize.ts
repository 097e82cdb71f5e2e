import { z } from 'zod';
import type { Operation } from '../operation.ts';
import { processId } from './process-fields.ts';

const side = z.int().min(1).max(65_535);

/**
 * Sets the size of a process's terminal.
 * Source: specification, Agent contract, "Processes".
 */
export const processResize = {
  route: '/v1/process/resize',
  effect: 'mutate',
  params: z.strictObject({ processId, rows: side, cols: side }),
  result: z.strictObject({ resized: z.literal(true) }),
  streams: [],
  asRoot: 'tells the supervisor, which tells the kernel',
  asUser: 'nothing',
  audit: 'process.resize',
  poll: true,
  secrets: [],
  errors: ['process_not_found', 'process_not_running', 'process_not_tty', 'uncertain'],
  timeLimitMs: () => 0,
} as const satisfies Operation;
