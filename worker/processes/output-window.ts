/**
 * Purpose: the newest output of one stream of a process, by absolute offsets.
 * Rights: none of its own. What it holds is a tool's, and leaves by `read` alone.
 * Called by: process.ts.
 * Fails: never. What is over its size is forgotten, oldest first, and its offsets say so.
 */

/** How much is taken at first, bytes; a quiet process costs no more. */
const firstBytes = 4096;

/** Where a read that wraps around is put together: new memory of that size costs more than all else of a read. */
let joined: Buffer = Buffer.alloc(0);

const joinedOf = (first: Buffer, second: Buffer): Buffer => {
  const size = first.length + second.length;
  if (joined.length < size) joined = Buffer.allocUnsafeSlow(size);
  first.copy(joined, 0);
  second.copy(joined, first.length);
  return joined.subarray(0, size);
};

/** A ring of bytes, which grows up to its size and is copied into: a kept piece would hold on to all of its chunk. */
export class OutputWindow {
  readonly #bytesMax: number;
  #ring: Buffer;
  #end = 0;
  #length = 0;
  #closed = false;

  /** @param bytesMax the newest bytes that are kept */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
    this.#ring = Buffer.alloc(Math.min(firstBytes, bytesMax));
  }

  /** Offset of the oldest byte that is kept. */
  get retainedFrom(): number {
    return this.#end - this.#length;
  }

  /** Offset behind the newest byte: how much was written in all. */
  get end(): number {
    return this.#end;
  }

  /** True when no more will come. */
  get closed(): boolean {
    return this.#closed;
  }

  /** No more will come. */
  close(): void {
    this.#closed = true;
  }

  /** Takes what was written. */
  append(data: Buffer): void {
    this.#end += data.length;
    const kept = data.length > this.#bytesMax ? data.subarray(data.length - this.#bytesMax) : data;
    const length = Math.min(this.#bytesMax, this.#length + kept.length);
    if (length > this.#ring.length) this.#grow(length, this.#end - data.length - this.#length);
    this.#length = length;
    this.#put(kept, this.#end - kept.length);
  }

  /**
   * The bytes from one offset on, at most so many; the caller stays within `retainedFrom` and `end`, and uses them at
   * once: they are good until the next `append`, and the next `read` of any window.
   */
  read(from: number, bytesMax: number): Buffer {
    const size = Math.min(bytesMax, this.#end - from);
    if (size <= 0) return Buffer.alloc(0);
    const at = from % this.#ring.length;
    const first = this.#ring.subarray(at, at + size);
    return first.length === size ? first : joinedOf(first, this.#ring.subarray(0, size - first.length));
  }

  /** A byte lies at its offset modulo the size, so that growing has to lay them all out again. */
  #grow(length: number, from: number): void {
    const kept = this.read(from, this.#length);
    this.#ring = Buffer.alloc(Math.min(this.#bytesMax, Math.max(length, 2 * this.#ring.length)));
    this.#put(kept, from);
  }

  #put(data: Buffer, offset: number): void {
    if (data.length === 0) return;
    const at = offset % this.#ring.length;
    const first = Math.min(data.length, this.#ring.length - at);
    data.copy(this.#ring, at, 0, first);
    data.copy(this.#ring, 0, first);
  }
}
