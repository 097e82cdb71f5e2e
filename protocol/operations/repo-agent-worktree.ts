import { z } from 'zod';
import type { Operation } from '../operation.ts';
import { userNumber } from '../values.ts';
import { branchName, lowerCaseUuid, project, repositoryEnvironment, worktreeRow } from './repo-fields.ts';

/**
 * Makes an agent's worktree: as a conversation's, with a folder and a branch of its own kind.
 * Source: specification, HTTP API, "POST /v1/repo/agent-worktree".
 */
export const repoAgentWorktree = {
  ...worktreeRow,
  route: '/v1/repo/agent-worktree',
  params: z.strictObject({
    user: userNumber,
    project,
    id: lowerCaseUuid,
    baseBranch: branchName,
    env: repositoryEnvironment.optional(),
  }),
  audit: 'repo.agent_worktree',
  secrets: ['project', 'id', 'baseBranch', 'env'],
} as const satisfies Operation;
