import { z } from 'zod';
import type { Operation } from '../operation.ts';
import { userNumber } from '../values.ts';

/**
 * Empties a user's space and makes its folders anew.
 * Source: specification, HTTP API, "POST /v1/workspace/reset".
 */
export const workspaceReset = {
  route: '/v1/workspace/reset',
  effect: 'mutate',
  params: z.strictObject({ user: userNumber }),
  result: z.strictObject({ reset: z.literal(true) }),
  streams: [],
  asRoot: 'makes the space on first use',
  asUser: 'the fs helper empties the space and makes its folders',
  audit: 'workspace.reset',
  secrets: [],
  errors: ['workspace_broken', 'busy', 'reset_failed', 'uncertain', 'worker_unavailable'],
  timeLimitMs: (limits) => limits.resetMs,
} as const satisfies Operation;
