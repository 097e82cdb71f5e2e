/** Measures the worker by its link, as the gateway reaches it, without HTTP. Runs as the gateway's uid. */
import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { Connection } from '../../protocol/connection.ts';
import type { Outcome } from '../../protocol/envelope.ts';
import { mintOperationId } from '../../protocol/operation-id.ts';
import { serveRounds } from './rounds.ts';
import { benchUser } from './users.ts';

const ready = Promise.withResolvers<void>();
const replies = new Map<number, (outcome: Outcome) => void>();
const socket = connect(process.argv[2] ?? '');
const link = new Connection('gateway', randomUUID(), (bytes) => socket.write(bytes), {
  ready: () => ready.resolve(),
  reply: (id, outcome) => {
    replies.get(id)?.(outcome);
    replies.delete(id);
  },
});
socket.on('data', (chunk: Buffer) => link.receive(chunk));
socket.on('error', ready.reject);
setInterval(() => link.tick(), 1_000);

const run = async (caller: number): Promise<void> => {
  const id = link.request('exec', { user: benchUser(caller), tool: 'true' }, mintOperationId());
  const outcome = await new Promise<Outcome>((resolve) => replies.set(id, resolve));
  if (!outcome.ok) throw new Error(`a run was answered with ${outcome.error}`);
};

serveRounds(async () => {
  await ready.promise;
  return run;
});
