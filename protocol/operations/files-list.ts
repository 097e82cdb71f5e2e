import { z } from 'zod';
import { listEntriesMax } from '../limits.ts';
import type { Operation } from '../operation.ts';
import { relativePath, userNumber } from '../values.ts';

/**
 * The entries of a folder beneath the user's home.
 * Source: specification, HTTP API, "File routes".
 */
export const filesList = {
  route: '/v1/files/list',
  effect: 'read',
  params: z.strictObject({ user: userNumber, path: relativePath.optional() }),
  result: z.strictObject({
    path: z.string(),
    entries: z
      .array(
        z.strictObject({
          name: z.string().min(1).max(255),
          kind: z.enum(['file', 'dir', 'symlink', 'other']),
          size: z.int().min(0),
          modified: z.iso.datetime(),
        }),
      )
      .max(listEntriesMax),
    truncated: z.boolean(),
  }),
  streams: [],
  asRoot: 'makes the space on first use',
  asUser: 'the fs helper walks to the folder and reads its entries',
  audit: 'files.list',
  secrets: ['path'],
  errors: [
    'workspace_broken',
    'outside_workspace',
    'not_found',
    'bad_target',
    'symlink',
    'file_failed',
    'worker_unavailable',
  ],
  timeLimitMs: (limits) => limits.fileMs,
} as const satisfies Operation;
