/**
 * Measures requests over HTTP, one kept connection for each caller. A socket and no more: a client library would
 * take as much time as the gateway on a machine with few cores.
 */
import { connect, type Socket } from 'node:net';
import { serveRounds } from './rounds.ts';
import { benchUser } from './users.ts';

/** What is asked; `body.user` is the caller's own. */
export interface HttpRound {
  readonly port: number;
  readonly token: string;
  readonly method: string;
  readonly path: string;
  readonly body?: Readonly<Record<string, unknown>>;
  /** The status that is expected. */
  readonly status: number;
  /** Part of the answer that must be there. */
  readonly contains?: string;
}

const blankLine = '\r\n\r\n';

/** One connection, one request at a time. */
class Connection {
  readonly #socket: Socket;
  #received: Buffer[] = [];
  #size = 0;
  /** Bytes of the whole answer, once its head is there. */
  #wanted: number | undefined;
  #done: PromiseWithResolvers<Buffer> | undefined;

  constructor(port: number) {
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true });
    this.#socket.on('data', (chunk: Buffer) => this.#take(chunk));
    this.#socket.on('error', (error) => this.#done?.reject(error));
    this.#socket.on('close', () => this.#done?.reject(new Error('the connection was closed')));
  }

  ask(request: Buffer): Promise<Buffer> {
    this.#received = [];
    this.#size = 0;
    this.#wanted = undefined;
    this.#done = Promise.withResolvers();
    this.#socket.write(request);
    return this.#done.promise;
  }

  #take(chunk: Buffer): void {
    this.#received.push(chunk);
    this.#size += chunk.length;
    if (this.#wanted === undefined) {
      const all = this.#received.length === 1 ? chunk : Buffer.concat(this.#received);
      const head = all.indexOf(blankLine);
      if (head < 0) return;
      const length = /\r\ncontent-length: *(\d+)/i.exec(all.toString('latin1', 0, head))?.[1] ?? '0';
      this.#wanted = head + blankLine.length + Number(length);
    }
    if (this.#size >= this.#wanted) this.#done?.resolve(Buffer.concat(this.#received));
  }
}

const bytesOf = ({ port, token, method, path, body }: HttpRound, caller: number): Buffer => {
  const text = body === undefined ? '' : JSON.stringify({ ...body, user: benchUser(caller) });
  const head = [
    `${method} ${path} HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    `Authorization: Bearer ${token}`,
    ...(body === undefined ? [] : ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(text)}`]),
  ];
  return Buffer.from(`${head.join('\r\n')}${blankLine}${text}`);
};

const connections = new Map<string, Connection>();

const connectionOf = (port: number, caller: number): Connection => {
  const key = `${port} ${caller}`;
  const connection = connections.get(key) ?? new Connection(port);
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
