import { z } from 'zod';
import { usageTimeoutMs } from '../limits.ts';
import type { Operation } from '../operation.ts';
import { agentId, answeredWith, argumentList, environment, relativePath, text, userNumber } from '../values.ts';

/** The one tool that takes `agent`. */
export const agentTool = 'evo-workflow';

/**
 * Runs one tool of the allowlist in the user's home.
 * Source: specification, HTTP API, "POST /v1/exec".
 */
export const exec = {
  route: '/v1/exec',
  effect: 'mutate',
  params: z
    .strictObject({
      user: userNumber,
      tool: text.max(256),
      args: argumentList.optional(),
      dir: relativePath.optional(),
      env: environment.optional(),
      agent: z.string().optional(),
    })
    .refine(
      ({ agent, tool }) => !agent || (tool === agentTool && agentId.safeParse(agent).success),
      answeredWith('bad_agent'),
    ),
  result: z.strictObject({
    exitCode: z.int().min(-1).max(255),
    truncated: z.boolean(),
    timedOut: z.boolean(),
    durationMs: z.int().min(0),
    signal: z.string().max(16).nullable(),
  }),
  streams: ['stdout', 'stderr'],
  asRoot: 'makes the space on first use; the spawner forks, sets the limits and drops',
  asUser: 'enters the directory beneath the home, then the tool',
  audit: 'exec',
  startsRun: true,
  secrets: ['args', 'dir', 'env', 'agent'],
  errors: [
    'tool_not_allowed',
    'workspace_broken',
    'disk_quota',
    'usage_failed',
    'busy',
    'outside_workspace',
    'not_found',
    'bad_target',
    'exec_failed',
    'limit_failed',
    'kill_incomplete',
    'uncertain',
    'worker_unavailable',
  ],
  // What the space holds may have to be counted first.
  timeLimitMs: (limits) => usageTimeoutMs + limits.execMs,
} as const satisfies Operation;
