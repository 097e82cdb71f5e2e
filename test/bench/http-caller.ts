/**
 * Measures requests over HTTP, one kept connection for each caller. A socket and no more: a client library would
 * take as much time as the gateway on a machine with few cores.
 */
import { Connection, requestOf, type Target } from './connection.ts';
import { serveRounds } from './rounds.ts';
import { benchUser } from './users.ts';

/** What is asked; `body.user` is the caller's own. */
export interface HttpRound extends Target {
  readonly body?: Readonly<Record<string, unknown>>;
  /** The status that is expected. */
  readonly status: number;
  /** Part of the answer that must be there. */
  readonly contains?: string;
}

const bytesOf = (round: HttpRound, caller: number): Buffer =>
  requestOf(round, round.body && { ...round.body, user: benchUser(caller) });

const connections = new Map<string, Connection>();

const connectionOf = (port: number, caller: number): Connection => {
  const key = `${port} ${caller}`;
  const kept = connections.get(key);
  const connection = kept === undefined || kept.closed ? new Connection(port) : kept;
  connections.set(key, connection);
  return connection;
};

serveRounds(async ({ callers, what }) => {
  const round = what as HttpRound;
  const requests = Array.from({ length: callers }, (_, caller) => bytesOf(round, caller));
  const expected = Buffer.from(`HTTP/1.1 ${round.status} `);
  return async (caller) => {
    const answer = await connectionOf(round.port, caller).ask(requests[caller] ?? Buffer.alloc(0));
    const right = answer.subarray(0, expected.length).equals(expected);
    if (!right || (round.contains !== undefined && !answer.includes(round.contains)))
      throw new Error(`not the expected answer: ${answer.toString('latin1', 0, 600)}`);
  };
});
