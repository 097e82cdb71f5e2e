/**
 * Purpose: full answers of finished operations, for whoever asks again within a while.
 * Rights: none. Outputs of tools are in here, in memory only, and in no log.
 * Called by: mutations.ts and the handler of operation.status.
 * Fails: never; what is too large, too old or too much is forgotten, the oldest first.
 */
import type { Outcome } from '../../protocol/envelope.ts';
import { answerBytesMax, answersBytesMax, answersRetainMs } from '../../protocol/limits.ts';

/** One answer as it was given. */
export interface KeptAnswer {
  readonly outcome: Exclude<Outcome, { ok: 'expired' }>;
  /** The bytes of its streams. */
  readonly streams: ReadonlyMap<string, Buffer<ArrayBuffer>>;
}

/** What an answer without any output is counted as, bytes. */
const baseBytes = 1024;

/** Answers by operation id, oldest first. */
export class Answers {
  readonly #now: () => number;
  readonly #kept = new Map<string, KeptAnswer & { readonly bytes: number; readonly until: number }>();
  #bytes = 0;

  /** @param now monotonic, ms */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Keeps an answer, unless it is too large. */
  keep(operationId: string, answer: KeptAnswer): void {
    let bytes = baseBytes;
    for (const { length } of answer.streams.values()) bytes += length;
    if (bytes > answerBytesMax) return;
    const until = this.#now() + answersRetainMs;
    this.#kept.set(operationId, { ...answer, bytes, until });
    this.#bytes += bytes;
    for (const [oldest, entry] of this.#kept) {
      if (this.#bytes <= answersBytesMax && entry.until > this.#now()) break;
      this.#kept.delete(oldest);
      this.#bytes -= entry.bytes;
    }
  }

  /** The answer, if it is still kept. */
  get(operationId: string): KeptAnswer | undefined {
    const found = this.#kept.get(operationId);
    return found !== undefined && found.until > this.#now() ? found : undefined;
  }
}
