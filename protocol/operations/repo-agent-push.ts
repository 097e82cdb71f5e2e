import { z } from 'zod';
import type { Operation } from '../operation.ts';
import { userNumber } from '../values.ts';
import { lowerCaseUuid, project, pushRow, repositoryEnvironment } from './repo-fields.ts';

/**
 * Pushes an agent's branch: as a conversation's.
 * Source: specification, HTTP API, "POST /v1/repo/agent-push".
 */
export const repoAgentPush = {
  ...pushRow,
  route: '/v1/repo/agent-push',
  params: z.strictObject({
    user: userNumber,
    project,
    id: lowerCaseUuid,
    env: repositoryEnvironment.optional(),
  }),
  audit: 'repo.agent_push',
  secrets: ['project', 'id', 'env'],
} as const satisfies Operation;
