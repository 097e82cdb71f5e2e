import { z } from 'zod';
import type { Operation } from '../operation.ts';
import { userNumber } from '../values.ts';
import { branchName, lowerCaseUuid, project, repositoryEnvironment, worktreeRow } from './repo-fields.ts';

/**
 * Makes a conversation's worktree from the newest commit of a base branch, on a branch of its own.
 * Source: specification, HTTP API, "POST /v1/repo/worktree".
 */
export const repoWorktree = {
  ...worktreeRow,
  route: '/v1/repo/worktree',
  params: z.strictObject({
    user: userNumber,
    project,
    conversation: lowerCaseUuid,
    baseBranch: branchName,
    env: repositoryEnvironment.optional(),
  }),
  audit: 'repo.worktree',
  secrets: ['project', 'conversation', 'baseBranch', 'env'],
} as const satisfies Operation;
