/** Gathers pieces in one buffer: however small they are, the memory is that of their bytes, not of a million objects. */
export class GrowingBuffer {
  readonly #bytesMax: number;
  #buffer: Buffer = Buffer.alloc(0);
  #length = 0;

  /** @param bytesMax more than this is never appended: the caller looks before */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** What was appended so far. */
  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  /** Adds a piece. */
  append(piece: Uint8Array): void {
    const end = this.#length + piece.length;
    if (end > this.#buffer.length) {
      const grown = Buffer.allocUnsafe(Math.min(this.#bytesMax, Math.max(end, 2 * this.#buffer.length)));
      this.#buffer.copy(grown, 0, 0, this.#length);
      this.#buffer = grown;
    }
    this.#buffer.set(piece, this.#length);
    this.#length = end;
  }
}
