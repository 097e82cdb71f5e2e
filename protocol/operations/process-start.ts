import { z } from 'zod';
import { usageTimeoutMs } from '../limits.ts';
import type { Operation } from '../operation.ts';
import { argumentList, text } from '../values.ts';
import { workspaceId } from './process-fields.ts';

/**
 * Starts a tool of the allowlist in a workspace, to be addressed by a handle. Answered once the tool is executed.
 * Source: specification, Agent contract, "Processes".
 */
export const processStart = {
  route: '/v1/process/start',
  effect: 'mutate',
  params: z.strictObject({
    workspaceId,
    tool: text.max(256),
    args: argumentList.optional(),
    tty: z.boolean().optional(),
  }),
  result: z.strictObject({ processId: z.string().max(64), dispatchStatus: z.literal('started') }),
  fixedReply: true,
  streams: [],
  asRoot: 'makes the space on first use; the spawner makes the terminal, forks, sets the limits and drops',
  asUser: 'enters the workspace beneath the home, then the tool',
  audit: 'process.start',
  startsRun: true,
  secrets: ['args', 'workspaceId'],
  errors: [
    'tool_not_allowed',
    'workspace_broken',
    'disk_quota',
    'usage_failed',
    'busy',
    'outside_workspace',
    'workspace_not_found',
    'bad_target',
    'exec_failed',
    'limit_failed',
    'kill_incomplete',
    'uncertain',
    'worker_unavailable',
  ],
  // What the space holds may have to be counted first.
  timeLimitMs: (limits) => usageTimeoutMs + limits.fileMs,
} as const satisfies Operation;
