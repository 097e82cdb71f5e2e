import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { Connection } from '../../../protocol/connection.ts';
import type { MessageOf } from '../../../protocol/envelope.ts';
import { encodeFrame } from '../../../protocol/frame.ts';
import { eventBytesMax } from '../../../protocol/limits.ts';
import { Mailbox } from './mailbox.ts';

/** A result of exec as the worker gives it. */
export const execResult = { exitCode: 0, truncated: false, timedOut: false, durationMs: 3, signal: null };

/** The worker's end of one link. */
export class FakeLink {
  readonly socket: Socket;
  readonly connection: Connection;
  readonly requests = new Mailbox<MessageOf<'request'>>();
  readonly cancels = new Mailbox<number>();
  readonly credits = new Mailbox<number>();

  constructor(socket: Socket, onRequest: ((link: FakeLink, request: MessageOf<'request'>) => void) | undefined) {
    this.socket = socket;
    this.connection = new Connection('worker', randomUUID(), (bytes) => socket.write(bytes), {
      request: (request) => (onRequest ? onRequest(this, request) : this.requests.put(request)),
      cancel: (id) => this.cancels.put(id),
      credit: (id) => this.credits.put(this.connection.creditOf(id)),
    });
    socket.on('data', (chunk: Buffer) => {
      try {
        this.connection.receive(chunk);
      } catch (error) {
        socket.destroy();
        throw error;
      }
    });
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.connection.close());
  }

  /** Sends a whole output, within the credit there is at the beginning, and the result. */
  succeed(id: number, stdout: Uint8Array | string = '', stderr: Uint8Array | string = '', cut = false): void {
    const streams = { stdout: Buffer.from(stdout), stderr: Buffer.from(stderr) };
    for (const [name, bytes] of Object.entries(streams))
      for (let at = 0; at < bytes.length; at += eventBytesMax)
        this.connection.event(id, name, new Uint8Array(bytes.subarray(at, at + eventBytesMax)));
    this.connection.reply(id, {
      ok: true,
      result: execResult,
      streams: { stdout: { bytes: streams.stdout.length, cut }, stderr: { bytes: streams.stderr.length, cut } },
    });
  }

  /** Sends what no honest worker would. */
  say(message: object): void {
    this.socket.write(encodeFrame(message));
  }
}

/** A worker made of a real socket and the shared state machine; tests say what it answers. */
export class FakeWorker {
  readonly links = new Mailbox<FakeLink>();
  /** Answers requests; without it they wait in `requests` of their link. */
  onRequest: ((link: FakeLink, request: MessageOf<'request'>) => void) | undefined;
  readonly #path: string;
  readonly #open = new Set<Socket>();
  #server: Server | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /** Begins to listen. */
  async listen(): Promise<void> {
    this.#server = createServer((socket) => {
      this.#open.add(socket);
      socket.once('close', () => this.#open.delete(socket));
      this.links.put(new FakeLink(socket, (link, request) => (this.onRequest ?? keep)(link, request)));
    });
    this.#server.listen(this.#path);
    await once(this.#server, 'listening');
  }

  /** Ends everything. */
  async close(): Promise<void> {
    if (this.#server === undefined) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.#open) socket.destroy();
    await closed;
    this.#server = undefined;
  }
}

const keep = (link: FakeLink, request: MessageOf<'request'>): void => link.requests.put(request);
