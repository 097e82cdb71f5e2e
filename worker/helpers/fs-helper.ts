/**
 * Purpose: one fs helper: ready as root, then one user's for good, then one call at a time.
 * Rights: none of its own; the process is the spawner's side's.
 * Called by: stand-by.ts makes them, helper-pool.ts uses them.
 * Fails: with a HelperFailure when the helper is gone, or said what the contract does not know; it is then ended.
 * Deadlines are the caller's: a call that takes too long is ended by `discard`.
 */
import type { FsCall, FsRequest } from '../../helper/contract/fs.ts';
import { Refusal } from '../../protocol/errors.ts';
import { killLimitMs } from '../../protocol/limits.ts';
import { Run, type RunEnd } from '../runs/run.ts';
import { encodeFrame, FrameReader, type UncheckedReply } from './frames.ts';

/** A supervisor that has not ended its helper by then is no longer believed in, ms. */
const supervisorLimitMs = 2 * killLimitMs;

/** The helper is of no use any more. What became of a call that it was sent is unknown. */
export class HelperFailure extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'HelperFailure';
  }
}

/** One process that does file operations. */
export class FsHelper {
  readonly #run: Run;
  readonly #reader = new FrameReader();
  #waiting: PromiseWithResolvers<UncheckedReply> | undefined;
  #over = false;
  #calls = 0;
  /** Settles when it has said that it is up. Rejects with a HelperFailure. */
  readonly ready: Promise<void>;
  /** How its process ended; `lost` when nobody has seen that. */
  readonly ended: Promise<RunEnd>;

  /** Starts it. `plan` are the bytes of MSG_HELPER. */
  constructor(socketPath: string, plan: Buffer) {
    this.#run = new Run(socketPath, plan, (_stream, data) => {
      this.#receive(data);
      return true;
    });
    this.ended = this.#run.ended;
    void this.ended.then(() => this.#fail('it has ended'));
    this.ready = this.#reply().then((reply) => {
      if (reply.kind !== 'ready') throw this.#fail('it is not ready');
    });
    this.ready.catch(() => undefined);
  }

  /** False when it has ended, or is about to. */
  get alive(): boolean {
    return !this.#over;
  }

  /**
   * Makes it a user's, for good. The supervisor is told first, so that it can end what has dropped.
   * @throws Refusal `workspace_broken`; HelperFailure
   */
  async become(uid: number, space: string): Promise<void> {
    if (this.alive) this.#run.nameUser(uid);
    const reply = await this.#ask({ kind: 'become', uid, space });
    if (reply.kind === 'dropped') return;
    const refused = reply.kind === 'refused' && reply.id === undefined && reply.code === 'workspace_broken';
    const failure = this.#fail('it did not become its user’s');
    throw refused ? new Refusal('workspace_broken') : failure;
  }

  /**
   * Has one call done. The shape of the result is still to be checked.
   * @throws Refusal of the helper's; HelperFailure
   */
  async call(call: FsCall): Promise<unknown> {
    this.#calls += 1;
    const id = this.#calls;
    const reply = await this.#ask({ kind: 'call', id, ...call });
    if (reply.kind === 'result' && reply.id === id) return reply.result;
    if (reply.kind === 'refused' && reply.id === id) throw new Refusal(reply.code);
    throw this.#fail('it answered something else');
  }

  /** Ends it; `ended` tells when it is gone. */
  discard(): void {
    this.#fail('it was discarded');
  }

  async #ask(request: FsRequest): Promise<UncheckedReply> {
    if (this.#waiting) throw new TypeError('a helper does one thing at a time');
    const frame = encodeFrame(request);
    if (this.alive) this.#run.write(frame);
    return await this.#reply();
  }

  async #reply(): Promise<UncheckedReply> {
    if (this.#over) throw new HelperFailure('it is gone');
    this.#waiting = Promise.withResolvers();
    return await this.#waiting.promise;
  }

  #receive(data: Buffer): void {
    if (this.#over) return;
    try {
      for (const reply of this.#reader.push(data)) {
        const waiting = this.#waiting;
        this.#waiting = undefined;
        if (waiting === undefined) this.#fail('it spoke unasked');
        else waiting.resolve(reply);
      }
    } catch {
      this.#fail('it broke the contract');
    }
  }

  #fail(why: string): HelperFailure {
    const failure = new HelperFailure(why);
    if (this.#over) return failure;
    this.#over = true;
    this.#waiting?.reject(failure);
    this.#waiting = undefined;
    this.#run.stop();
    const timer = setTimeout(() => this.#run.abandon(), supervisorLimitMs);
    void this.ended.then(() => clearTimeout(timer));
    return failure;
  }
}
