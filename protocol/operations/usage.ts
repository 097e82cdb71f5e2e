import { z } from 'zod';
import { usageEntriesMax, usageListedMax, usageTimeoutMs } from '../limits.ts';
import type { Operation } from '../operation.ts';
import { userNumber } from '../values.ts';

const bytes = z.int().min(0);
const count = z.int().min(0).max(usageEntriesMax);
/** One name of a file system (NAME_MAX); what is not UTF-8 has become U+FFFD, at most one for each byte. */
const nameLengthMax = 255;

/**
 * What a user's space holds.
 * Source: specification, HTTP API, "POST /v1/usage".
 */
export const usage = {
  route: '/v1/usage',
  effect: 'read',
  params: z.strictObject({ user: userNumber }),
  result: z.strictObject({
    user: userNumber,
    bytes,
    files: count,
    dirs: count,
    links: count,
    truncated: z.boolean(),
    limitBytes: bytes,
    over: z.boolean(),
    top: z.array(z.strictObject({ name: z.string().max(nameLengthMax), bytes, files: count })).max(usageListedMax),
    groups: z
      .array(z.strictObject({ path: z.string().max('home/work//'.length + 2 * nameLengthMax), bytes, files: count }))
      .max(usageListedMax),
    groupsTruncated: z.boolean(),
  }),
  streams: [],
  asRoot: 'looks whether there is a space and makes none; the spawner forks and drops',
  asUser:
    'walks the space from its descriptor down, follows no link, opens folders that are closed and closes them again',
  audit: 'usage',
  secrets: [],
  errors: ['workspace_broken', 'usage_failed', 'worker_unavailable'],
  timeLimitMs: () => usageTimeoutMs,
} as const satisfies Operation;
