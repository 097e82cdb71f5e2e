import { Packr, RESET_BUFFER_MODE } from 'msgpackr/pack';
import { frameBytesMax } from './limits.ts';
import { checkMessage, ProtocolViolation } from './msgpack-check.ts';

/**
 * Records, extensions and shared structures stay off, and what is undefined (an extension in msgpackr) is left
 * out: what goes out is plain msgpack that `checkMessage` accepts. msgpackr only writes: see there.
 */
const codec = new Packr({ useRecords: false, skipValues: [undefined] });

const prefixBytes = 4;

/**
 * One frame: u32 big-endian length, then one msgpack value.
 * @throws RangeError when the message is larger than a frame can be: the caller's bug, since settings that
 * could lead to one are refused at start
 */
export const encodeFrame = (message: object): Buffer => {
  // Into the place of the last one, which was copied out: new memory for each large message costs more than to pack it.
  const body = codec.pack(message, RESET_BUFFER_MODE);
  if (body.length > frameBytesMax) throw new RangeError('a message is larger than a frame can be');
  const frame = Buffer.allocUnsafe(prefixBytes + body.length);
  frame.writeUInt32BE(body.length, 0);
  frame.set(body, prefixBytes);
  return frame;
};

/**
 * Cuts a byte stream into frames and decodes them. Holds at most one unfinished frame, whose length was
 * checked before memory was taken for it.
 */
export class FrameDecoder {
  readonly #prefix = Buffer.alloc(prefixBytes);
  #prefixFilled = 0;
  #body: Buffer | undefined;
  #bodyFilled = 0;

  /**
   * Yields the messages that `chunk` completes, undecided about their meaning.
   * @throws ProtocolViolation for a length of 0 or over the limit, or bytes that `checkMessage` refuses
   */
  *push(chunk: Buffer): Generator<unknown, void, undefined> {
    let rest = chunk;
    while (rest.length > 0) {
      if (this.#body === undefined) {
        rest = this.#takePrefix(rest);
        if (this.#prefixFilled < prefixBytes) return;
        const length = this.#prefix.readUInt32BE(0);
        if (length === 0 || length > frameBytesMax) throw new ProtocolViolation('a frame has a forbidden length');
        if (rest.length >= length) {
          this.#prefixFilled = 0;
          const whole = rest.subarray(0, length);
          rest = rest.subarray(length);
          yield checkMessage(whole);
          continue;
        }
        this.#body = Buffer.allocUnsafe(length);
        this.#bodyFilled = 0;
      }
      const taken = rest.copy(this.#body, this.#bodyFilled);
      this.#bodyFilled += taken;
      rest = rest.subarray(taken);
      if (this.#bodyFilled === this.#body.length) {
        const whole = this.#body;
        this.#body = undefined;
        this.#prefixFilled = 0;
        yield checkMessage(whole);
      }
    }
  }

  #takePrefix(bytes: Buffer): Buffer {
    const taken = bytes.copy(this.#prefix, this.#prefixFilled, 0, prefixBytes - this.#prefixFilled);
    this.#prefixFilled += taken;
    return bytes.subarray(taken);
  }
}
