import { GrowingBuffer } from '../protocol/growing-buffer.ts';
import { ProtocolViolation } from '../protocol/msgpack-check.ts';
import { textOf } from '../protocol/stream-text.ts';

/** Gathers the bytes of one stream of a call, up to a limit. */
export class StreamText {
  readonly #bytesMax: number;
  #kept: GrowingBuffer | undefined;
  #length = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
    this.#kept = new GrowingBuffer(bytesMax);
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
    this.#kept?.append(piece);
    this.#length = end;
  }

  /** Nobody wants the text any more; bytes are only counted from here on. */
  forget(): void {
    this.#kept = undefined;
  }

  /** The text. @param cut true when the stream went on: then an incomplete last character is left out */
  text(cut: boolean): string {
    return textOf(this.#kept?.bytes ?? Buffer.alloc(0), cut);
  }
}
