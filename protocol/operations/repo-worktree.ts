import { z } from 'zod';
import { usageTimeoutMs } from '../limits.ts';
import type { Operation } from '../operation.ts';
import { userNumber } from '../values.ts';
import {
  branchName,
  lowerCaseUuid,
  project,
  repositoryEnvironment,
  worktreeErrors,
  worktreeResult,
} from './repo-fields.ts';

/**
 * Makes a conversation's worktree from the newest commit of a base branch, on a branch of its own.
 * Source: specification, HTTP API, "POST /v1/repo/worktree".
 */
export const repoWorktree = {
  route: '/v1/repo/worktree',
  effect: 'mutate',
  params: z.strictObject({
    user: userNumber,
    project,
    conversation: lowerCaseUuid,
    baseBranch: branchName,
    env: repositoryEnvironment.optional(),
  }),
  result: worktreeResult,
  streams: ['stdout', 'stderr'],
  asRoot: 'checks the clone’s URL and its host; the spawner forks, sets the limits and drops',
  asUser: 'git, on the network in a clean repository only; the fs helper moves the worktree to its place',
  audit: 'repo.worktree',
  startsRun: true,
  secrets: ['project', 'conversation', 'baseBranch', 'env'],
  errors: worktreeErrors,
  // What the space holds may have to be counted first, and what is left cleared away.
  timeLimitMs: (limits) => usageTimeoutMs + limits.execMs + limits.fileMs,
} as const satisfies Operation;
