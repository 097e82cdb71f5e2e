import { z } from 'zod';
import type { Operation } from '../operation.ts';
import { userNumber } from '../values.ts';
import { lowerCaseUuid, project, pushRow, repositoryEnvironment } from './repo-fields.ts';

/**
 * Pushes a conversation's branch, to exactly one ref, without force.
 * Source: specification, HTTP API, "POST /v1/repo/push".
 */
export const repoPush = {
  ...pushRow,
  route: '/v1/repo/push',
  params: z.strictObject({
    user: userNumber,
    project,
    conversation: lowerCaseUuid,
    env: repositoryEnvironment.optional(),
  }),
  audit: 'repo.push',
  secrets: ['project', 'conversation', 'env'],
} as const satisfies Operation;
