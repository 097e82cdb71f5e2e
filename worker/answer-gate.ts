/**
 * Purpose: large answers one after another, each when the link has room for it.
 * Rights: none.
 * Called by: link.ts, which has one for each link; handlers of large answers wait at it.
 * Fails: never. What waits costs no more than its request.
 *
 * Replies have no credit. A hundred readers of a MiB each would otherwise be answered in one turn of the event loop: all of
 * it lies in memory then, nothing else gets through before it is out, and the heartbeat counts that as silence.
 */

/** Where answers wait for their turn. */
export class AnswerGate {
  readonly #isFull: () => boolean;
  readonly #waiting: (() => void)[] = [];
  #taken = false;

  /** @param isFull true while the link has more to send than it should */
  constructor(isFull: () => boolean) {
    this.#isFull = isFull;
  }

  /** Resolves when an answer may be put together; it is expected to be on its way before the next turn of the event loop. */
  enter(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push(resolve);
    this.open();
    return promise;
  }

  /** To be called when the link has become less full: lets the next one in. */
  open(): void {
    if (this.#taken || this.#isFull()) return;
    const next = this.#waiting.shift();
    if (next === undefined) return;
    this.#taken = true;
    setImmediate(() => {
      this.#taken = false;
      this.open();
    });
    next();
  }
}
