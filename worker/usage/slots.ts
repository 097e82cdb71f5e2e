/**
 * Purpose: bounds how many counts there are at once, and how many wait for their turn.
 * Rights: none of its own.
 * Called by: scan.ts.
 * Fails: with the refusal `overloaded` for whoever would wait beyond the bound, or waited too long.
 */
import { Refusal } from '../../protocol/errors.ts';

/** A bounded number of turns at once, first come, first served. */
export class Slots {
  readonly #max: number;
  readonly #waitingMax: number;
  readonly #waiting = new Set<() => void>();
  #taken = 0;

  constructor(max: number, waitingMax: number) {
    this.#max = max;
    this.#waitingMax = waitingMax;
  }

  /** How many are taken. */
  get taken(): number {
    return this.#taken;
  }

  /**
   * Takes a turn, waiting for it at most this long, and returns what gives it back.
   * @throws Refusal `overloaded`
   */
  async take(limitMs: number): Promise<() => void> {
    if (this.#taken >= this.#max) await this.#turn(limitMs);
    else this.#taken += 1;
    let given = false;
    return () => {
      if (given) return;
      given = true;
      this.#pass();
    };
  }

  async #turn(limitMs: number): Promise<void> {
    if (this.#waiting.size >= this.#waitingMax) throw new Refusal('overloaded');
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waiting.add(resolve);
    const timer = setTimeout(() => {
      this.#waiting.delete(resolve);
      reject(new Refusal('overloaded'));
    }, limitMs);
    await promise.finally(() => clearTimeout(timer));
  }

  /** Hands the turn to the next in line: it counts as taken all the while. */
  #pass(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#taken -= 1;
      return;
    }
    this.#waiting.delete(next);
    next();
  }
}
