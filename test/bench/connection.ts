import { connect, type Socket } from 'node:net';

/** Where something is asked. */
export interface Target {
  readonly port: number;
  readonly token: string;
  readonly method: string;
  readonly path: string;
}

const blankLine = '\r\n\r\n';

/** One kept connection, one request at a time. */
export class Connection {
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

  /** The server closes what was not used for some time. */
  get closed(): boolean {
    return !this.#socket.writable && !this.#socket.connecting;
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

/** A request as it goes over the wire; without a body if there is none. */
export const requestOf = ({ port, token, method, path }: Target, body?: object): Buffer => {
  const text = body === undefined ? '' : JSON.stringify(body);
  const head = [
    `${method} ${path} HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    `Authorization: Bearer ${token}`,
    ...(body === undefined ? [] : ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(text)}`]),
  ];
  return Buffer.from(`${head.join('\r\n')}${blankLine}${text}`);
};
