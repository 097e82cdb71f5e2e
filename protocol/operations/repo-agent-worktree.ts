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
 * Makes an agent's worktree: as a conversation's, with a folder and a branch of its own kind.
 * Source: specification, HTTP API, "POST /v1/repo/agent-worktree".
 */
export const repoAgentWorktree = {
  route: '/v1/repo/agent-worktree',
  effect: 'mutate',
  params: z.strictObject({
    user: userNumber,
    project,
    id: lowerCaseUuid,
    baseBranch: branchName,
    env: repositoryEnvironment.optional(),
  }),
  result: worktreeResult,
  streams: ['stdout', 'stderr'],
  asRoot: 'checks the clone’s URL and its host; the spawner forks, sets the limits and drops',
  asUser: 'git, on the network in a clean repository only; the fs helper moves the worktree to its place',
  audit: 'repo.agent_worktree',
  startsRun: true,
  secrets: ['project', 'id', 'baseBranch', 'env'],
  errors: worktreeErrors,
  // What the space holds may have to be counted first, and what is left cleared away.
  timeLimitMs: (limits) => usageTimeoutMs + limits.execMs + limits.fileMs,
} as const satisfies Operation;
