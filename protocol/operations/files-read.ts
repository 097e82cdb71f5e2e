import { z } from 'zod';
import { readBytesMax } from '../limits.ts';
import type { Operation } from '../operation.ts';
import { relativePath, userNumber } from '../values.ts';

/**
 * The content of a text file beneath the user's home; of any other file only what it is.
 * Source: specification, HTTP API, "File routes".
 */
export const filesRead = {
  route: '/v1/files/read',
  effect: 'read',
  params: z.strictObject({ user: userNumber, path: relativePath.optional() }),
  result: z.strictObject({
    path: z.string(),
    size: z.int().min(0),
    text: z.boolean(),
    content: z.string().max(readBytesMax).nullable(),
    reason: z.enum(['binary', 'too_large']).nullable(),
  }),
  streams: [],
  asRoot: 'makes the space on first use',
  asUser: 'the fs helper walks to the file and reads it',
  audit: 'files.read',
  secrets: ['path'],
  errors: [
    'workspace_broken',
    'outside_workspace',
    'not_found',
    'bad_target',
    'symlink',
    'is_directory',
    'file_failed',
    'worker_unavailable',
  ],
  timeLimitMs: (limits) => limits.fileMs,
} as const satisfies Operation;
