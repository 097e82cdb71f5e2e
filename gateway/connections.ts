import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type Answer, headersOf } from './answer.ts';

/** How long a connection that was refused with raw bytes may go on sending, so that it reads them, ms. */
const lingerMs = 1_000;

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** True when more of the request is on its way, as far as its head tells. */
const bodyIsComing = (request: IncomingMessage): boolean => {
  if (request.complete || request.destroyed) return false;
  const { headers } = request;
  return headers['transfer-encoding'] !== undefined || !/^0*$/.test(headers['content-length'] ?? '');
};

/**
 * The open connections and the answers that each is still owed, in order. Sends the answers: each so that its
 * reader gets it, and none longer than its reader keeps reading.
 */
export class Connections {
  readonly #exchanges = new Map<Socket, Exchange[]>();
  readonly #refused = new WeakSet<Socket>();
  readonly #stallMs: number;
  #owed = 0;
  #idle: (() => void)[] = [];
  #closing = false;

  /** @param stallMs an answer whose reader takes nothing for this long is given up */
  constructor(stallMs: number) {
    this.#stallMs = stallMs;
  }

  /** A connection came in. */
  opened(socket: Socket): void {
    this.#exchanges.set(socket, []);
    socket.once('close', () => {
      const left = this.#exchanges.get(socket)?.length ?? 0;
      this.#exchanges.delete(socket);
      this.#settle(left);
    });
  }

  /** A request came in; it is owed an answer until that is out or its connection is gone. */
  asked(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const exchanges = this.#exchanges.get(socket);
    if (exchanges === undefined) return;
    const exchange = { request, response };
    exchanges.push(exchange);
    this.#owed += 1;
    response.once('close', () => {
      const index = exchanges.indexOf(exchange);
      if (index < 0 || !this.#exchanges.has(socket)) return;
      exchanges.splice(index, 1);
      this.#settle(1);
      // A pipelined answer that waited for its turn is on its way only now.
      const next = exchanges[0];
      if (next !== undefined) socket.setTimeout(next.response.headersSent ? this.#stallMs : 0);
    });
  }

  /** Answers from here on end their connections. */
  close(): void {
    this.#closing = true;
  }

  /** Resolves when no answer is owed any more; the caller bounds the wait. */
  async idle(): Promise<void> {
    if (this.#owed === 0) return;
    await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /**
   * Sends an answer. Where the rest of a request is still coming, the answer goes out at once but ends only
   * with the request: closing a connection with unread bytes resets it, and the caller would lose the answer.
   */
  send(request: IncomingMessage, response: ServerResponse, answer: Answer): void {
    if (response.destroyed) return;
    const headers = headersOf(answer);
    if (this.#closing) headers['Connection'] = 'close';
    response.writeHead(answer.status, headers);
    // A caller that expects 100-continue and got this instead sends no body; Node closes the connection.
    if (!bodyIsComing(request) || request.headers.expect !== undefined) response.end(answer.body);
    else {
      response.flushHeaders();
      if (answer.body !== undefined) response.write(answer.body);
      request.once('close', () => response.end());
      request.resume();
    }
    this.bound(response);
  }

  /** What is on its way goes out, or its reader is given up. */
  bound({ socket, writableLength }: ServerResponse): void {
    if (writableLength > 0) socket?.setTimeout(this.#stallMs);
  }

  /**
   * Ends a connection that can't be understood any further, with `bytes` as its last word, but only where they
   * can't be taken for the answer to an earlier request: that one may have taken effect.
   */
  refuse(socket: Socket, bytes: string): void {
    // What still comes on it is not understood either, and each piece is reported again.
    if (this.#refused.has(socket)) return;
    const exchanges = this.#exchanges.get(socket) ?? [];
    const [first] = exchanges;
    const unheard = first === undefined || (exchanges.length === 1 && !first.request.complete);
    if (!socket.writable || !unheard || first?.response.headersSent === true) {
      socket.destroy();
      return;
    }
    this.#refused.add(socket);
    const linger = setTimeout(() => socket.destroy(), lingerMs);
    socket.once('close', () => clearTimeout(linger));
    socket.end(bytes);
    socket.resume();
  }

  #settle(answers: number): void {
    this.#owed -= answers;
    if (this.#owed === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }
}
