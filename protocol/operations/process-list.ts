import { z } from 'zod';
import type { Operation } from '../operation.ts';
import { processState, workspaceId } from './process-fields.ts';

/**
 * The handles of one workspace, oldest first.
 * Source: specification, Agent contract, "Processes".
 */
export const processList = {
  route: '/v1/process/list',
  effect: 'read',
  params: z.strictObject({ workspaceId }),
  result: z.strictObject({
    processes: z.array(
      z.strictObject({
        processId: z.string().max(64),
        tool: z.string().max(256),
        state: processState,
        tty: z.boolean(),
        startedAt: z.iso.datetime(),
      }),
    ),
  }),
  streams: [],
  asRoot: 'looks at the handles',
  asUser: 'nothing',
  audit: 'process.list',
  poll: true,
  secrets: ['workspaceId'],
  errors: [],
  timeLimitMs: () => 0,
} as const satisfies Operation;
