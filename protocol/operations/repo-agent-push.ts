import { z } from 'zod';

import type { Operation } from '../operation.ts';
import { userNumber } from '../values.ts';
import { lowerCaseUuid, project, pushErrors, pushResult, repositoryEnvironment } from './repo-fields.ts';

/**
 * Pushes an agent's branch: as a conversation's.
 * Source: specification, HTTP API, "POST /v1/repo/agent-push".
 */
export const repoAgentPush = {
  route: '/v1/repo/agent-push',
  effect: 'mutate',
  params: z.strictObject({
    user: userNumber,
    project,
    id: lowerCaseUuid,

    env: repositoryEnvironment.optional(),
  }),
  result: pushResult,
  streams: ['stdout', 'stderr'],
  asRoot: 'checks the branch, the clone’s URL and its host; the spawner forks, sets the limits and drops',
  asUser: 'git, on the network in a clean repository only, into which it fetched the commit',
  audit: 'repo.agent_push',
  startsRun: true,
  secrets: ['project', 'id', 'env'],
  errors: pushErrors,
  // What is left may have to be cleared away.
  timeLimitMs: (limits) => limits.execMs + limits.fileMs,
} as const satisfies Operation;
