import { ProtocolViolation } from '../protocol/msgpack-check.ts';

/** Gathers the bytes of one stream of a call in one growing buffer: however small the pieces, the memory is bounded. */
export class StreamText {
  readonly #bytesMax: number;
  #buffer: Buffer | undefined = Buffer.alloc(0);
  #length = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Bytes that arrived. */
  get length(): number {
    return this.#length;
  }

  /**
   * Takes a piece in.
   * @throws ProtocolViolation when there is more than the configured limit
   */
  append(piece: Uint8Array): void {
    const end = this.#length + piece.length;
    if (end > this.#bytesMax) throw new ProtocolViolation('more output than is allowed');
    if (this.#buffer !== undefined) {
      if (end > this.#buffer.length) {
        const grown = Buffer.allocUnsafe(Math.min(this.#bytesMax, Math.max(end, 2 * this.#buffer.length)));
        this.#buffer.copy(grown, 0, 0, this.#length);
        this.#buffer = grown;
      }
      this.#buffer.set(piece, this.#length);
    }
    this.#length = end;
  }

  /** Nobody wants the text any more; bytes are only counted from here on. */
  forget(): void {
    this.#buffer = undefined;
  }

  /** The text. @param cut true when the stream went on: then an incomplete last character is left out */
  text(cut: boolean): string {
    const bytes = this.#buffer?.subarray(0, this.#length) ?? Buffer.alloc(0);
    // A decoder in streaming mode keeps back what the next piece might complete; there is none.
    return cut ? new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes, { stream: true }) : bytes.toString('utf8');
  }
}
