/**
 * Purpose: the worker's end of one connection to the spawner: one run, or the ending of all that a user has.
 * Rights: none of its own; the spawner's socket can be reached by this worker's pid alone.
 * Called by: runs.ts, end-lost.ts, and helpers/fs-helper.ts for a helper.
 * Fails: closed. What wire.h does not allow, or a connection that ends without a last word, makes the run
 * `lost`: nobody knows how it ended, and nothing is made up.
 */
import { createConnection, type Socket } from 'node:net';
import { constants } from 'node:os';
import type { LaunchStep } from '../../helper/contract.ts';
import { type RunExit, type SpawnerMessage, SpawnerMessages } from './messages.ts';
import { encodeEnd, encodeResize, encodeSignal, encodeStop, encodeUser, type TerminalSize } from './plan.ts';
import { StandardInput } from './standard-input.ts';

/** How a run came out. Only `exit` is an end that was seen; `failed` means that the tool has not run. */
export type RunEnd =
  | { readonly kind: 'exit'; readonly exit: RunExit }
  | { readonly kind: 'failed'; readonly step: LaunchStep; readonly errno: string }
  /** The spawner could not be reached, nothing was asked of it. */
  | { readonly kind: 'unreached' }
  | { readonly kind: 'lost' };

/**
 * Takes a run's output, which it copies if it keeps it: the next piece lies in the same place. Returns false to be left
 * alone until it calls `resume`. Of a process also the end of a stream, as a piece without bytes.
 */
export type OutputSink = (stream: 'stdout' | 'stderr', data: Buffer<ArrayBuffer>, resume: () => void) => boolean;

const noBytes = Buffer.alloc(0);

/** What is read at once, bytes: into one place for each run, since to take new memory for each piece costs more than to read it. */
const readBytes = 65_536;

/** The socket's own chunks are plain buffers; net types them a little wider. */
type Chunk = Buffer<ArrayBuffer>;

/** One run in the making, under way, or resisting its end. */
export class Run {
  readonly #socket: Socket;
  readonly #messages = new SpawnerMessages();
  readonly #sink: OutputSink;
  readonly #input: StandardInput;
  readonly #ended = Promise.withResolvers<RunEnd>();
  readonly #started = Promise.withResolvers<void>();
  readonly #incomplete = Promise.withResolvers<RunExit>();
  #connected = false;
  #stopped = false;

  /** Connects and sends the plan. */
  constructor(socketPath: string, plan: Buffer, sink: OutputSink) {
    this.#sink = sink;
    const buffer = Buffer.allocUnsafeSlow(readBytes);
    const callback = (bytes: number): true => {
      this.#receive(buffer.subarray(0, bytes));
      return true;
    };
    this.#socket = createConnection({ path: socketPath, onread: { buffer, callback } }, () => {
      this.#connected = true;
    });
    this.#socket.on('error', () => undefined);
    this.#socket.on('close', () => this.#ended.resolve({ kind: this.#connected ? 'lost' : 'unreached' }));
    this.#socket.write(plan);
    this.#input = new StandardInput((bytes) => this.#socket.write(bytes));
  }

  /** Settles when all of the run is gone, or nobody can tell any more. */
  get ended(): Promise<RunEnd> {
    return this.#ended.promise;
  }

  /** Settles when it is sure that the tool of a process was executed; never if nobody can tell before the end. */
  get started(): Promise<void> {
    return this.#started.promise;
  }

  /** Settles when the run could not be ended in time; `ended` may still follow. */
  get incomplete(): Promise<RunExit> {
    return this.#incomplete.promise;
  }

  /** False when its end was asked for, or nobody is there any more: what is sent to it then would be lost. */
  get listens(): boolean {
    return !this.#stopped && this.#socket.writable;
  }

  /** Asks for the end of the run; `ended` tells when it is there. */
  stop(): void {
    if (!this.listens) return;
    this.#stopped = true;
    this.#socket.write(encodeStop());
  }

  /** The size of a process's terminal. */
  resize(size: TerminalSize): void {
    if (this.listens) this.#socket.write(encodeResize(size));
  }

  /** Sends a signal to what is in front of a process's terminal, or to its leader's group. */
  signal(signal: number): void {
    if (this.listens) this.#socket.write(encodeSignal(signal));
  }

  /** Asks for the end of a process, without any grace unless that was asked for before. */
  kill(): void {
    this.signal(constants.signals.SIGKILL);
    this.#stopped = true;
  }

  /** True if so many bytes would be accepted by `offer`. */
  accepts(bytes: number): boolean {
    return this.#input.accepts(bytes);
  }

  /** Sends to the standard input of a process what `accepts` has room for. */
  offer(data: Buffer): void {
    if (this.listens) this.#input.write(data);
  }

  /** The end of a process's standard input. */
  closeInput(): void {
    if (this.listens) this.#input.end();
  }

  /** Names the user of a helper: before the helper itself learns it. */
  nameUser(uid: number): void {
    this.#socket.write(encodeUser(uid));
  }

  /** Sends to the standard input of a helper, as fast as that is read; the caller bounds what may wait. */
  write(data: Buffer): void {
    this.#input.write(data);
  }

  /** Gives the connection up: its supervisor, if there is still one, ends the run for that reason. */
  abandon(): void {
    this.#socket.destroy();
  }

  #receive(chunk: Chunk): void {
    try {
      for (const message of this.#messages.push(chunk)) this.#take(message);
    } catch {
      this.#ended.resolve({ kind: 'lost' });
      this.#socket.destroy();
    }
  }

  #take(message: SpawnerMessage): void {
    switch (message.kind) {
      case 'output':
        if (!this.#sink(message.stream, message.data, () => this.#socket.resume())) this.#socket.pause();
        break;
      case 'outputEnd':
        this.#sink(message.stream, noBytes, () => undefined);
        break;
      case 'started':
        this.#started.resolve();
        break;
      case 'stdinTaken':
        this.#input.taken(message.bytes);
        break;
      case 'incomplete':
        this.#incomplete.resolve(message.exit);
        break;
      case 'exit':
      case 'failed':
        this.#ended.resolve(message);
        this.#socket.end();
        break;
      case 'ended':
        this.#ended.resolve({ kind: 'lost' });
        this.#socket.destroy();
        break;
    }
  }
}

/**
 * Ends every process of a user, whoever its parent is. Resolves to true only when the spawner's side has seen
 * that none is left.
 */
export const endUser = async (socketPath: string, uid: number): Promise<boolean> => {
  const outcome = Promise.withResolvers<boolean>();
  const messages = new SpawnerMessages();
  const socket = createConnection(socketPath);
  socket.on('error', () => undefined);
  socket.on('close', () => outcome.resolve(false));
  socket.on('data', (chunk) => {
    try {
      for (const message of messages.push(chunk as Chunk)) outcome.resolve(message.kind === 'ended');
    } catch {
      outcome.resolve(false);
    }
    socket.end();
  });
  socket.write(encodeEnd(uid));
  return outcome.promise;
};
