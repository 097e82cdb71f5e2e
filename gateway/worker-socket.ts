import { connect, type Socket } from 'node:net';
import type { LinkLoss } from '../protocol/audit.ts';
import { Connection, type ConnectionEvents } from '../protocol/connection.ts';

/** Bytes that may wait for the worker before new requests are refused. */
const backlogBytesMax = 8 * 1024 * 1024;

/** How often the state machine looks at the clock, ms. */
const tickMs = 1_000;

/** One attempt at a link and, if it comes up, that link: a socket and a timer around the state machine. */
export class WorkerSocket {
  readonly connection: Connection;
  readonly #socket: Socket;
  readonly #timer: NodeJS.Timeout;
  readonly #lost: (reason: LinkLoss, cause?: Error) => void;
  #over = false;

  /**
   * Begins to connect. A worker that does not answer is `silence` after the hello limit.
   * @param lost called once, at the end, and never from within the constructor
   * @param clock monotonic, ms
   */
  constructor(
    path: string,
    instance: string,
    events: ConnectionEvents,
    lost: (reason: LinkLoss, cause?: Error) => void,
    clock: () => number,
  ) {
    this.#lost = lost;
    const socket = connect(path);
    this.#socket = socket;
    this.connection = new Connection('gateway', instance, (bytes) => socket.write(bytes), events, clock);
    this.#timer = setInterval(() => this.#guard('silence', () => this.connection.tick()), tickMs);
    socket.on('data', (chunk: Buffer) => this.#guard('protocol', () => this.connection.receive(chunk)));
    socket.on('error', (error) => this.#end('closed', error));
    socket.on('end', () => this.#end('closed'));
    socket.on('close', () => this.#end('closed'));
  }

  /** True while a request can be sent and its reply is to be expected. */
  get ready(): boolean {
    return !this.#over && this.connection.state === 'ready';
  }

  /** True while the worker does not take in what it was sent. */
  get congested(): boolean {
    return this.#socket.writableLength > backlogBytesMax;
  }

  /** Ends the link from this side; nobody is told. */
  close(): void {
    this.#over = true;
    clearInterval(this.#timer);
    this.connection.close();
    this.#socket.destroy();
  }

  #end(reason: LinkLoss, cause?: Error): void {
    if (this.#over) return;
    this.close();
    this.#lost(reason, cause);
  }

  /** Whatever goes wrong while a message is taken in ends the link: its other messages can't be trusted either. */
  #guard(reason: LinkLoss, act: () => void): void {
    try {
      act();
    } catch (error) {
      this.#end(reason, error instanceof Error ? error : undefined);
    }
  }
}
