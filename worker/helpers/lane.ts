/**
 * Purpose: one user's calls of one kind, one after the other, and the helper that does them.
 * Rights: none of its own.
 * Called by: helper-pool.ts.
 * Fails: `overloaded` when too much waits already, Expired for a turn that did not come in time.
 */
import { Refusal } from '../../protocol/errors.ts';
import type { FsHelper } from './fs-helper.ts';
import { before } from './limit.ts';

/** Calls that wait for their turn in one lane. */
const waitingMax = 64;

/** A lane. Each user has two, so that a look never waits behind a long delete. */
export class Lane {
  readonly user: number;
  /** Set while there is one. */
  helper: FsHelper | undefined;
  /** What the helper holds belongs to an earlier space: it does no other call. */
  stale = false;
  /** When its last call ended, ms of `performance.now()`. */
  usedAt = 0;
  #busy = false;
  readonly #waiting: PromiseWithResolvers<void>[] = [];
  #idle: NodeJS.Timeout | undefined;

  constructor(user: number) {
    this.user = user;
  }

  get busy(): boolean {
    return this.#busy;
  }

  /** Waits for the turn; whoever got it calls `done`. @throws Refusal `overloaded`; Expired */
  async turn(until: number, signal: AbortSignal): Promise<void> {
    clearTimeout(this.#idle);
    if (!this.#busy) {
      this.#busy = true;
      return;
    }
    if (this.#waiting.length >= waitingMax) throw new Refusal('overloaded');
    const turn = Promise.withResolvers<void>();
    this.#waiting.push(turn);
    try {
      await before(turn.promise, until, signal);
    } catch (error) {
      const at = this.#waiting.indexOf(turn);
      // It may have come in the same moment: then it goes to the next.
      if (at < 0) this.done();
      else this.#waiting.splice(at, 1);
      throw error;
    }
  }

  /** Gives the turn to the next. */
  done(): void {
    const next = this.#waiting.shift();
    this.usedAt = performance.now();
    if (next) next.resolve();
    else this.#busy = false;
  }

  /** Calls back when nothing was asked of it for this long. */
  whenIdle(idleMs: number, then: () => void): void {
    clearTimeout(this.#idle);
    this.#idle = setTimeout(then, idleMs);
  }

  /** Takes its helper away from it. */
  release(): FsHelper | undefined {
    const { helper } = this;
    clearTimeout(this.#idle);
    this.helper = undefined;
    this.stale = false;
    return helper;
  }
}
