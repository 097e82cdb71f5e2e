import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { createServer as createNetServer, type Server, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { Client, type ClientOptions } from '../../../../../protocol/client.ts';
import type { Operation } from '../../../../../protocol/operation.ts';
import { operations } from '../../../../../protocol/operations/index.ts';

/** What ids the service of a test gives. */
export const someId = '01890a5d-ac96-7cc0-8000-000000000000';
export const otherId = '01890a5d-ac96-7cc0-8000-000000000001';

/** A request as the server got it. */
export interface Seen {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
}

/** The table of the tests: the service's own and a read, which has no row of its own so far. */
export const table = {
  exec: operations.exec,
  look: { ...operations.exec, route: '/v1/look', effect: 'read' },
} as const satisfies Record<string, Operation>;

const urlOf = (server: Server): string => {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server does not listen on a port');
  return `http://127.0.0.1:${address.port}`;
};

/** A real HTTP server that answers what the test says, and keeps what it was asked. */
export class AnsweringServer {
  readonly seen: Seen[] = [];
  readonly url: string;

  private constructor(url: string) {
    this.url = url;
  }

  static async start(answer: (response: ServerResponse, seen: Seen) => void): Promise<AnsweringServer> {
    const server = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const text = Buffer.concat(chunks).toString();
      const body: unknown = text === '' ? undefined : JSON.parse(text);
      const seen = { path: request.url ?? '', headers: request.headers, body };
      self.seen.push(seen);
      answer(response, seen);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => {
      server.close();
      server.closeAllConnections();
    });
    const self = new AnsweringServer(urlOf(server));
    return self;
  }
}

/** Answers JSON. */
export const say = (
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): void => {
  response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
};

/** A server of bytes; `connections` counts what came. */
export const startRawServer = async (
  serve: (socket: Socket) => void,
): Promise<{ readonly url: string; readonly connections: () => number }> => {
  let count = 0;
  const open = new Set<Socket>();
  const server = createNetServer({ pauseOnConnect: true }, (socket) => {
    count += 1;
    open.add(socket);
    socket.on('error', () => socket.destroy());
    serve(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    for (const socket of open) socket.destroy();
  });
  return { url: urlOf(server), connections: () => count };
};

/** Calls back with each whole request (chunked, as the client sends it). */
export const onWholeRequest = (socket: Socket, done: () => void): void => {
  let text = '';
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
    if (!text.endsWith('\r\n0\r\n\r\n')) return;
    text = '';
    done();
  });
  socket.resume();
};

export const token = 'a-valid-service-token-of-enough-length';

export const clientOf = (url: string, options: Partial<ClientOptions> = {}): Client<typeof table> =>
  new Client(table, { address: url, token, fetch: globalThis.fetch, answerMs: 20_000, ...options });

/** A request of exec, and what goes with it. */
export const request = { user: 7, tool: 'git', args: ['status'] };
export const key = { idempotencyKey: 'chat-1:run.2' };

/** A whole answer of exec. */
export const result = {
  exitCode: 0,
  truncated: false,
  timedOut: false,
  durationMs: 3,
  signal: null,
  stdout: 'out',
  stderr: '',
};
