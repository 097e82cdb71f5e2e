import type { Answer } from './http.ts';
import type { Service } from './service.ts';

/** Runs a tool for a user under an Idempotency-Key. */
export const execKeyed = (
  service: Service,
  key: string,
  user: number,
  tool: string,
  args: readonly string[] = [],
  more: Readonly<Record<string, unknown>> = {},
): Promise<Answer> => service.client.post('/v1/exec', { user, tool, args, ...more }, { 'idempotency-key': key });

/** Asks what became of an operation. */
export const statusOf = (
  service: Service,
  asked: { readonly operationId: string } | { readonly user: number; readonly idempotencyKey: string },
): Promise<Answer> => service.client.post('/v1/operation/status', asked);
