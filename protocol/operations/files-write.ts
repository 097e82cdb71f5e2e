import { z } from 'zod';
import { usageTimeoutMs } from '../limits.ts';
import type { Operation } from '../operation.ts';
import { fileText, relativePath, userNumber } from '../values.ts';

/**
 * Makes or replaces a file beneath the user's home, atomically.
 * Source: specification, HTTP API, "File routes".
 */
export const filesWrite = {
  route: '/v1/files/write',
  effect: 'mutate',
  params: z.strictObject({ user: userNumber, path: relativePath.optional(), content: fileText }),
  result: z.strictObject({ written: z.literal(true), size: z.int().min(0) }),
  streams: [],
  asRoot: 'makes the space on first use',
  asUser: 'the fs helper walks to the parent, writes beside the home and renames',
  audit: 'files.write',
  secrets: ['path', 'content'],
  errors: [
    'bad_request',
    'workspace_broken',
    'disk_quota',
    'usage_failed',
    'busy',
    'outside_workspace',
    'not_found',
    'bad_target',
    'symlink',
    'is_directory',
    'write_failed',
    'uncertain',
    'worker_unavailable',
  ],
  sizes: (limits) => ({ content: limits.writeBytes }),
  // What the space holds may have to be counted first.
  timeLimitMs: (limits) => usageTimeoutMs + limits.fileMs,
} as const satisfies Operation;
