import { z } from 'zod';
import type { Operation } from '../operation.ts';
import { relativePath, userNumber } from '../values.ts';

/**
 * Deletes a file, a link or a whole folder beneath the user's home.
 * Source: specification, HTTP API, "File routes".
 */
export const filesDelete = {
  route: '/v1/files/delete',
  effect: 'mutate',
  params: z.strictObject({ user: userNumber, path: relativePath.optional() }),
  result: z.strictObject({ deleted: z.literal(true) }),
  streams: [],
  asRoot: 'makes the space on first use',
  asUser: 'the fs helper walks to the parent and removes; of worktrees also the registrations',
  audit: 'files.delete',
  secrets: ['path'],
  errors: [
    'workspace_broken',
    'busy',
    'outside_workspace',
    'not_found',
    'bad_target',
    'file_failed',
    'uncertain',
    'worker_unavailable',
  ],
  timeLimitMs: (limits) => limits.fileMs,
} as const satisfies Operation;
