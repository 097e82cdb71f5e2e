/**
 * Purpose: bounds how many helpers are users' at the same time.
 * Rights: none of its own.
 * Called by: helper-pool.ts.
 * Fails: `overloaded` when too many wait already, Expired for a place that did not become free in time.
 */
import { Refusal } from '../../protocol/errors.ts';
import { before } from './limit.ts';

/** Calls that wait for a place. */
const waitingMax = 256;

/** A number of places; whoever comes when all are taken waits in a queue. */
export class Places {
  readonly #max: number;
  readonly #makeRoom: () => void;
  readonly #waiting: PromiseWithResolvers<void>[] = [];
  #taken = 0;

  /** @param makeRoom asks for one place to be given back, if that can be done */
  constructor(max: number, makeRoom: () => void) {
    this.#max = max;
    this.#makeRoom = makeRoom;
  }

  /** True while somebody waits. */
  get wanted(): boolean {
    return this.#waiting.length > 0;
  }

  /** @throws Refusal `overloaded`; Expired */
  async take(until: number, signal: AbortSignal): Promise<void> {
    if (this.#taken < this.#max) {
      this.#taken += 1;
      return;
    }
    if (this.#waiting.length >= waitingMax) throw new Refusal('overloaded');
    const place = Promise.withResolvers<void>();
    this.#waiting.push(place);
    this.#makeRoom();
    try {
      await before(place.promise, until, signal);
    } catch (error) {
      const at = this.#waiting.indexOf(place);
      // It may have come in the same moment: then it goes to the next.
      if (at < 0) this.giveBack();
      else this.#waiting.splice(at, 1);
      throw error;
    }
  }

  giveBack(): void {
    const next = this.#waiting.shift();
    if (next) next.resolve();
    else this.#taken -= 1;
  }
}
