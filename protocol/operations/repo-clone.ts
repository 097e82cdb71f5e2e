import { z } from 'zod';
import { usageTimeoutMs } from '../limits.ts';
import type { Operation } from '../operation.ts';
import { userNumber } from '../values.ts';
import { folder, gitErrors, gitResult, gitRow, repositoryEnvironment, repositoryUrl } from './repo-fields.ts';

/**
 * Clones a repository of an allowed host, shallow and with one branch, into `repos`.
 * Source: specification, HTTP API, "POST /v1/repo/clone".
 */
export const repoClone = {
  ...gitRow,
  route: '/v1/repo/clone',
  params: z.strictObject({ user: userNumber, url: repositoryUrl, env: repositoryEnvironment.optional() }),
  result: z.strictObject({ ...gitResult, folder }),
  asRoot: 'makes the space on first use; checks the host; the spawner forks, sets the limits and drops',
  asUser:
    'git, beside the home and without any configuration of the user’s; the fs helper moves the clone to its place',
  audit: 'repo.clone',
  secrets: ['url', 'env'],
  errors: [...gitErrors, 'disk_quota', 'usage_failed', 'exists'],
  // What the space holds may have to be counted first, and what is left cleared away.
  timeLimitMs: (limits) => usageTimeoutMs + limits.execMs + limits.fileMs,
} as const satisfies Operation;
