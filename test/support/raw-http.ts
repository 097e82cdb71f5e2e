import { connect, type Socket } from 'node:net';
import { eventually } from './wait.ts';

/** A connection on which a test says exactly the bytes it wants to. */
export class RawConnection {
  readonly socket: Socket;
  readonly #chunks: Buffer[] = [];
  #closed = false;

  constructor(port: number, allowHalfOpen = false) {
    this.socket = connect({ host: '127.0.0.1', port, allowHalfOpen });
    this.socket.on('data', (chunk: Buffer) => this.#chunks.push(chunk));
    this.socket.on('error', () => undefined);
    this.socket.on('close', () => {
      this.#closed = true;
    });
    if (allowHalfOpen) this.socket.on('end', () => this.socket.end());
  }

  /** All that came so far. */
  get text(): string {
    return Buffer.concat(this.#chunks).toString('latin1');
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Says something; chainable. */
  say(...parts: readonly (string | Buffer)[]): this {
    for (const part of parts) this.socket.write(part);
    return this;
  }

  /** Waits for the server's end of the connection; returns all that came. */
  async ended(limitMs = 5_000): Promise<string> {
    await eventually(`the server ends the connection; so far: ${this.text.slice(0, 500)}`, () => this.#closed, limitMs);
    return this.text;
  }

  /** Waits until what came matches. */
  async heard(pattern: RegExp, limitMs = 5_000): Promise<string> {
    await eventually(`${pattern} from the server`, () => pattern.test(this.text), limitMs);
    return this.text;
  }

  destroy(): void {
    this.socket.destroy();
  }
}

/** Statuses of the answers in a text, in order. */
export const statusesIn = (text: string): number[] =>
  Array.from(text.matchAll(/HTTP\/1\.1 (\d{3}) /g), ([, status]) => Number(status));

/** A request as text. */
export const rawRequest = (line: string, headers: readonly string[], body = ''): string =>
  [line, ...headers, '', body].join('\r\n');
