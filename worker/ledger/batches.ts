/**
 * Purpose: what is asked of the ledger's thread, gathered: one batch is under way, what comes meanwhile is the next.
 * Rights: none.
 * Called by: ledger.ts.
 * Fails: what is not answered in time is told so, and taken back if the thread does not have it yet: the disk may stand
 * still for ever, and what waits for it must not fill this process's memory.
 */
import { ledgerTimeoutMs } from '../../protocol/limits.ts';
import type { LedgerAnswer, LedgerRequest } from './record.ts';

/** What the thread says; or `late`: it was asked, and may do it yet. `failed` was not done and never will be. */
export type Came = LedgerAnswer | { readonly came: 'late' };

interface Asked {
  readonly request: LedgerRequest;
  readonly settle: (answer: Came) => void;
}

/** The requests on their way to the thread and back. */
export class Batches {
  readonly #post: (batch: readonly LedgerRequest[]) => void;
  /** What waits for the batch under way. */
  readonly #asked = new Set<Asked>();
  #underWay: readonly Asked[] = [];

  /** @param post gives a batch to the thread, whose answers come to `take` */
  constructor(post: (batch: readonly LedgerRequest[]) => void) {
    this.#post = post;
  }

  /**
   * Asks one thing; the answer comes within `ledgerTimeoutMs`. An outcome is never taken back: there is one at most
   * for each operation that is on record, or may be, so that they are bounded like those are.
   */
  ask(request: LedgerRequest): Promise<Came> {
    const { promise, resolve } = Promise.withResolvers<Came>();
    const settle = (answer: Came): void => {
      clearTimeout(timer);
      resolve(answer);
    };
    const asked: Asked = { request, settle };
    const timer = setTimeout(() => {
      const takenBack = request.ask !== 'finish' && this.#asked.delete(asked);
      resolve(takenBack ? { came: 'failed', code: 'timeout' } : { came: 'late' });
    }, ledgerTimeoutMs);
    this.#asked.add(asked);
    if (this.#underWay.length === 0) this.#send();
    return promise;
  }

  /** The thread's answers to the batch that it has. */
  take(answers: readonly LedgerAnswer[]): void {
    const batch = this.#underWay;
    this.#underWay = [];
    this.#send();
    for (const [index, { settle }] of batch.entries()) settle(answers[index] ?? { came: 'failed', code: 'no answer' });
  }

  /** All that gathered: one commit for it. */
  #send(): void {
    if (this.#asked.size === 0) return;
    this.#underWay = [...this.#asked];
    this.#asked.clear();
    this.#post(this.#underWay.map(({ request }) => request));
  }
}
