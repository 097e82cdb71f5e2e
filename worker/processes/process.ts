/**
 * Purpose: one process that is addressed by its handle: its output, its input, and how it ended.
 * Rights: none of its own; what it is told to do goes to its supervisor.
 * Called by: processes.ts, and the handlers of operations/process.ts.
 * Fails: with refusals. Its memory is bounded by two windows and the ids of its last writes.
 */
import { constants } from 'node:os';
import { Refusal } from '../../protocol/errors.ts';
import { processWriteIdsMax } from '../../protocol/limits.ts';
import type { ProcessSignal, Termination } from '../../protocol/operations/process-fields.ts';
import type { TerminalSize } from '../runs/plan.ts';
import type { RunEnd } from '../runs/run.ts';
import type { RunControls } from '../runs/runs.ts';
import { OutputWindow } from './output-window.ts';
import { terminationOf } from './termination.ts';

/** The streams that can be read. */
export type StreamName = 'stdout' | 'stderr';

/** What a process is from its beginning on. */
export interface ProcessFacts {
  readonly processId: string;
  readonly workspaceId: string;
  readonly user: number;
  readonly tool: string;
  readonly tty: boolean;
  readonly startedAt: Date;
}

/** What is to be written. */
export interface Input {
  readonly data: Buffer;
  readonly eof: boolean;
  readonly writeId: string | undefined;
}

/** What a terminal's user types at its end of file, unless told otherwise (termios(3), VEOF). */
const endOfFileCharacter = Buffer.from([0x04]);

/** One process, running or ended. */
export class Process {
  readonly facts: ProcessFacts;
  readonly windows: Readonly<Record<StreamName, OutputWindow>>;
  readonly #asked = new Set<string>();
  /** By id, how many bytes were written; the oldest are forgotten. */
  readonly #writes = new Map<string, number>();
  readonly #waiting = new Set<() => void>();
  #controls: RunControls | undefined;
  #linkLost = false;
  #inputEnded = false;
  #termination: Termination | undefined;

  constructor(facts: ProcessFacts, retainBytes: number) {
    this.facts = facts;
    this.windows = { stdout: new OutputWindow(retainBytes), stderr: new OutputWindow(retainBytes) };
    // A terminal has one stream; whoever reads the other one waits for nothing.
    if (facts.tty) this.windows.stderr.close();
  }

  /** Undefined while anything of it runs. */
  get termination(): Termination | undefined {
    return this.#termination;
  }

  /** True from the loss of the link until it has ended. */
  get isLost(): boolean {
    return this.#linkLost && this.#termination === undefined;
  }

  /** It runs, and is spoken to by these from here on. */
  began(controls: RunControls): void {
    this.#controls = controls;
    if (this.#linkLost) controls.stop();
  }

  /** Takes a piece of output; one without bytes is the stream's end. True: the next may follow at once. */
  took(stream: StreamName, data: Buffer): true {
    if (data.length === 0) this.windows[stream].close();
    else this.windows[stream].append(data);
    this.#changed();
    return true;
  }

  /** Nothing of it is left. */
  ended(end: RunEnd, at: Date): void {
    this.#controls = undefined;
    this.#termination = terminationOf(end, { asked: this.#asked, linkLost: this.#linkLost }, at);
    for (const window of Object.values(this.windows)) window.close();
    this.#changed();
  }

  /**
   * Resolves at the next piece of output or end, after so many ms, or when nobody waits any more.
   * @returns false when nothing came
   */
  async change(waitMs: number, signal: AbortSignal): Promise<boolean> {
    if (waitMs <= 0 || signal.aborted) return false;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const changed = (): void => resolve(true);
    const over = (): void => resolve(false);
    const timer = setTimeout(over, waitMs);
    this.#waiting.add(changed);
    signal.addEventListener('abort', over, { once: true });
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(changed);
      signal.removeEventListener('abort', over);
    }
  }

  /**
   * Looks whether it could be written now.
   * @throws Refusal `process_not_running`, `stdin_closed`, `process_backpressure`
   */
  checkInput({ data, eof, writeId }: Input): void {
    if (writeId !== undefined && this.#writes.has(writeId)) return;
    const controls = this.#running();
    if (this.#inputEnded) throw new Refusal('stdin_closed');
    // All of it or nothing.
    const more = eof && this.facts.tty ? endOfFileCharacter.length : 0;
    if (!controls.accepts(data.length + more)) throw new Refusal('process_backpressure');
  }

  /**
   * Writes all of it; what has the id of an earlier write is not written again.
   * @returns how many bytes were written, then or now
   * @throws Refusal as checkInput
   */
  write(input: Input): number {
    const { data, eof, writeId } = input;
    const before = writeId === undefined ? undefined : this.#writes.get(writeId);
    if (before !== undefined) return before;
    this.checkInput(input);
    const controls = this.#running();
    if (data.length > 0) controls.offer(data);
    if (eof) this.#endInput(controls);
    if (writeId !== undefined) this.#remember(writeId, data.length);
    return data.length;
  }

  /** @throws Refusal `process_not_running`, `process_not_tty` */
  checkResize(): void {
    this.#running();
    if (!this.facts.tty) throw new Refusal('process_not_tty');
  }

  /** @throws Refusal as checkResize */
  resize(size: TerminalSize): void {
    this.checkResize();
    this.#running().resize(size);
  }

  /** Sends one signal; SIGKILL, or none, is the end of the whole tree. Does nothing to one that has ended. */
  terminate(signal: ProcessSignal | undefined): void {
    const controls = this.#controls;
    if (controls === undefined) return;
    if (signal === undefined) controls.stop();
    else if (signal === 'SIGKILL') controls.kill();
    else {
      this.#asked.add(signal);
      controls.signal(constants.signals[signal]);
    }
  }

  /** Nobody can ask for it any more: it is ended. */
  lose(): void {
    this.#linkLost = true;
    this.#controls?.stop();
  }

  /** While it is being ended, and when its supervisor is gone, nothing reaches it any more: never told as written. */
  #running(): RunControls {
    if (this.#controls?.listens !== true) throw new Refusal('process_not_running');
    return this.#controls;
  }

  #endInput(controls: RunControls): void {
    this.#inputEnded = true;
    if (this.facts.tty) controls.offer(endOfFileCharacter);
    else controls.closeInput();
  }

  #remember(writeId: string, bytes: number): void {
    this.#writes.set(writeId, bytes);
    const [oldest] = this.#writes.keys();
    if (this.#writes.size > processWriteIdsMax && oldest !== undefined) this.#writes.delete(oldest);
  }

  #changed(): void {
    for (const changed of this.#waiting) changed();
  }
}
