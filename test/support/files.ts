import type { Answer } from './http.ts';
import { type ProcessView, processesOf } from './processes.ts';
import type { Service } from './service.ts';
import { uidOf } from './user.ts';

type Route = 'files/list' | 'files/read' | 'files/write' | 'files/delete' | 'workspace/reset';

/** Asks a file route for a user; `key` is the Idempotency-Key. */
export const ask = (
  service: Service,
  route: Route,
  fields: Readonly<Record<string, unknown>>,
  key?: string,
): Promise<Answer> => service.client.post(`/v1/${route}`, fields, key === undefined ? {} : { 'idempotency-key': key });

/** The content that a read tells. */
export const contentOf = async (service: Service, user: number, path: string): Promise<unknown> => {
  const { status, text } = await ask(service, 'files/read', { user, path });
  if (status !== 200) throw new Error(`not read: ${text}`);
  return (JSON.parse(text) as { content: unknown }).content;
};

/** The fs helpers that are a user's, zombies left out. */
export const helpersOf = (user: number): ProcessView[] =>
  processesOf(uidOf(user)).filter(
    ({ command, state, uids }) => state !== 'Z' && uids[0] === uidOf(user) && command.includes('helper/fs/main'),
  );
