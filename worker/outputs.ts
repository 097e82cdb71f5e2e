/**
 * Purpose: the output of one request on its way to the gateway, within its credit.
 * Rights: none of its own.
 * Called by: link.ts makes one for each request; handlers write to it.
 * Fails: a gateway that takes nothing in makes the producer pause; link.ts ends a link that stalls for too long.
 */
import type { StreamEnd } from '../protocol/envelope.ts';
import { GrowingBuffer } from '../protocol/growing-buffer.ts';
import { answerBytesMax, eventBytesMax } from '../protocol/limits.ts';

/** How much may be sent now, and how to send it: the link's side of one request. */
export interface EventChannel {
  credit(): number;
  send(stream: string, data: Uint8Array<ArrayBuffer>): void;
}

interface Piece {
  readonly stream: string;
  readonly data: Uint8Array<ArrayBuffer>;
}

/**
 * The output of one request on its way to the gateway. What the gateway has not given credit for waits here,
 * and whoever produces it is asked to pause, so that a stalled gateway costs one piece of memory per request.
 */
export class Outputs {
  readonly #channel: EventChannel;
  readonly #waiting: Piece[] = [];
  readonly #sent = new Map<string, { bytes: number; cut: boolean }>();
  /** What was written so far, while that is little enough to be told again. */
  readonly #kept = new Map<string, GrowingBuffer>();
  #keptBytes = 0;
  #resume: (() => void) | undefined;
  #emptied: (() => void) | undefined;
  #discarding = false;
  #waitingSince: number | undefined;

  constructor(channel: EventChannel, streams: readonly string[]) {
    this.#channel = channel;
    for (const stream of streams) this.#sent.set(stream, { bytes: 0, cut: false });
  }

  /** For how long nothing could be sent for want of credit, ms; 0 when nothing waits. */
  stalledMs(now: number): number {
    return this.#waitingSince === undefined ? 0 : now - this.#waitingSince;
  }

  /** Takes a piece, which is the caller's again afterwards. Returns false when the producer should pause until `resume` is called. */
  write(stream: string, data: Uint8Array<ArrayBuffer>, resume: () => void): boolean {
    const entry = this.#sent.get(stream);
    if (!entry) throw new Error('an operation wrote to a stream that it does not have');
    if (data.length === 0) return true;
    this.#keep(stream, data);
    if (this.#discarding) return true;
    entry.bytes += data.length;
    this.#waiting.push({ stream, data });
    this.flush();
    const last = this.#waiting.at(-1);
    if (last === undefined) return true;
    // What waits stays, while the piece's place is read into again.
    this.#waiting[this.#waiting.length - 1] = { stream, data: Uint8Array.from(last.data) };
    this.#resume = resume;
    return false;
  }

  /** Marks a stream as longer than what was sent of it. */
  markCut(stream: string): void {
    const entry = this.#sent.get(stream);
    if (entry) entry.cut = true;
  }

  /** Sends what there is credit for. */
  flush(): void {
    let piece = this.#waiting[0];
    while (piece) {
      const size = Math.min(piece.data.length, eventBytesMax, this.#channel.credit());
      if (size === 0) {
        this.#waitingSince ??= performance.now();
        return;
      }
      this.#waitingSince = undefined;
      this.#channel.send(piece.stream, piece.data.subarray(0, size));
      if (size < piece.data.length) this.#waiting[0] = { stream: piece.stream, data: piece.data.subarray(size) };
      else this.#waiting.shift();
      piece = this.#waiting[0];
    }
    this.#released();
  }

  /** Nobody will read any more: what comes from here on is dropped, and the producer never waits. */
  discard(): void {
    this.#discarding = true;
    this.#waitingSince = undefined;
    this.#waiting.length = 0;
    this.#released();
  }

  /** Resolves when everything written so far is on its way or was discarded. */
  async sent(): Promise<void> {
    if (this.#waiting.length === 0) return;
    await new Promise<void>((resolve) => {
      this.#emptied = resolve;
    });
  }

  /** What the reply tells of each stream. */
  ends(): Record<string, StreamEnd> {
    return Object.fromEntries(this.#sent);
  }

  /** All that was written, by stream, sent or not; undefined if it was too much to be kept. */
  kept(): ReadonlyMap<string, Buffer<ArrayBuffer>> | undefined {
    if (this.#keptBytes > answerBytesMax) return undefined;
    return new Map(Array.from(this.#kept, ([stream, { bytes }]) => [stream, Buffer.from(bytes)]));
  }

  #keep(stream: string, data: Uint8Array<ArrayBuffer>): void {
    this.#keptBytes += data.length;
    if (this.#keptBytes > answerBytesMax) {
      this.#kept.clear();
      return;
    }
    const buffer = this.#kept.get(stream) ?? new GrowingBuffer(answerBytesMax);
    buffer.append(data);
    this.#kept.set(stream, buffer);
  }

  #released(): void {
    // Forgotten before they are called: a producer may write at once, and be paused anew.
    const [resume, emptied] = [this.#resume, this.#emptied];
    this.#resume = undefined;
    this.#emptied = undefined;
    resume?.();
    emptied?.();
  }
}
