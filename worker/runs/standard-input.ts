/**
 * Purpose: standard input on its way to a program, within the window of helper/native/wire.h.
 * Rights: none of its own.
 * Called by: run.ts.
 * Fails: with a SpawnerViolation when the spawner's side took more than it was sent.
 */
import { wire } from '../../helper/contract.ts';
import { SpawnerViolation } from './messages.ts';
import { encodeInput } from './plan.ts';

/** What the spawner's side has not taken waits here, so that it never has to hold more than its window. */
export class StandardInput {
  readonly #send: (message: Buffer) => void;
  #waiting: Buffer[] = [];
  #room: number = wire.stdinWindowBytes;

  constructor(send: (message: Buffer) => void) {
    this.#send = send;
  }

  write(data: Buffer): void {
    this.#waiting.push(data);
    this.#flush();
  }

  /** True if all of so many bytes can go out at once. */
  accepts(bytes: number): boolean {
    return this.#waiting.length === 0 && bytes <= this.#room;
  }

  /** No more will come; nothing waits. */
  end(): void {
    this.#send(encodeInput(Buffer.alloc(0)));
  }

  /** So many bytes were written to the program, or thrown away since it reads no more. @throws SpawnerViolation */
  taken(bytes: number): void {
    this.#room += bytes;
    if (this.#room > wire.stdinWindowBytes) throw new SpawnerViolation('more input taken than was sent');
    this.#flush();
  }

  #flush(): void {
    for (let [data] = this.#waiting; data !== undefined && this.#room > 0; [data] = this.#waiting) {
      const size = Math.min(data.length, this.#room, wire.relayBytesMax);
      // An empty message would be the end of the input.
      if (size > 0) this.#send(encodeInput(data.subarray(0, size)));
      this.#room -= size;
      if (size < data.length) this.#waiting[0] = data.subarray(size);
      else this.#waiting.shift();
    }
  }
}
