/** Things that arrive and are waited for, in order. */
export class Mailbox<Item> {
  readonly #arrived: Item[] = [];
  readonly #waiting: ((item: Item) => void)[] = [];

  /** Something arrived. */
  put(item: Item): void {
    const waiting = this.#waiting.shift();
    if (waiting === undefined) this.#arrived.push(item);
    else waiting(item);
  }

  /** The next one, as soon as it is there. */
  async next(): Promise<Item> {
    const item = this.#arrived.shift();
    return item ?? new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** How many arrived that nobody took. */
  get size(): number {
    return this.#arrived.length;
  }
}
