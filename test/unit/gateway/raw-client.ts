import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Mailbox } from './mailbox.ts';

/** One answer as it came over the wire. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** An HTTP client that sends what it is told to, byte for byte, and reads answers with a Content-Length. */
export class RawClient {
  readonly socket: Socket;
  /** Resolves when the connection is gone; true if it was reset. */
  readonly closed: Promise<boolean>;
  readonly #answers = new Mailbox<RawAnswer | 'closed'>();
  #received = '';

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk: Buffer) => {
      this.#received += chunk.toString('latin1');
      this.#cut();
    });
    let wasReset = false;
    socket.on('error', () => {
      wasReset = true;
    });
    this.closed = once(socket, 'close').then(() => wasReset);
    socket.once('close', () => this.#answers.put('closed'));
  }

  /** Connects. */
  static async connect(port: number): Promise<RawClient> {
    const socket = connect({ port, host: '127.0.0.1' });
    await once(socket, 'connect');
    return new RawClient(socket);
  }

  /** Sends bytes. */
  write(bytes: string | Uint8Array): this {
    this.socket.write(bytes);
    return this;
  }

  /** The next answer. */
  async answer(): Promise<RawAnswer> {
    const answer = await this.#answers.next();
    if (answer === 'closed') throw new Error('the connection ended without an answer');
    return answer;
  }

  /** The next answer's status, `100` included. */
  async status(): Promise<number> {
    return (await this.answer()).status;
  }

  /** Hangs up. */
  end(): void {
    this.socket.destroy();
  }

  #cut(): void {
    for (;;) {
      const headEnd = this.#received.indexOf('\r\n\r\n');
      if (headEnd < 0) return;
      const [first = '', ...lines] = this.#received.slice(0, headEnd).split('\r\n');
      const headers = Object.fromEntries(
        lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
      );
      const bodyEnd = headEnd + 4 + Number(headers['content-length'] ?? 0);
      if (this.#received.length < bodyEnd) return;
      const body = Buffer.from(this.#received.slice(headEnd + 4, bodyEnd), 'latin1').toString();
      this.#received = this.#received.slice(bodyEnd);
      this.#answers.put({ status: Number(first.split(' ')[1]), headers, body });
    }
  }
}

/** Sends one request on a connection of its own and returns the answer. */
export const exchange = async (port: number, bytes: string | Uint8Array): Promise<RawAnswer> => {
  const client = await RawClient.connect(port);
  try {
    return await client.write(bytes).answer();
  } finally {
    client.end();
  }
};

/** The bytes of a request. */
export const requestText = (line: string, headers: Readonly<Record<string, string>> = {}, body = ''): string => {
  const all = { Host: 'runner', ...headers };
  const fields = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${line} HTTP/1.1\r\n${fields.join('')}\r\n${body}`;
};
