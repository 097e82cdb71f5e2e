/**
 * Purpose: one mutation's way through the ledger: is its key known, it begins, it is finished.
 * Rights: none of its own.
 * Called by: dispatch.ts, for every mutating row of the table; handlers say when the effect begins.
 * Fails: closed. Nothing begins that is not on record. Two that race with one key can't both begin: see enter().
 */
import type { StopReason } from '../../protocol/audit.ts';
import type { Outcome } from '../../protocol/envelope.ts';
import { errorRow, Refusal } from '../../protocol/errors.ts';
import type { RecordedOutcome } from '../../protocol/operations/operation-status.ts';
import type { Answers, KeptAnswer } from './answers.ts';
import type { Ledger } from './ledger.ts';
import type { LedgerRecord } from './record.ts';

/** A mutation as it came in. */
export interface MutationRequest {
  readonly operationId: string;
  readonly operation: string;
  readonly user: number;
  readonly params: Readonly<Record<string, unknown>>;
  readonly idempotencyKey: string | undefined;
  /** When it came in, ms since 1970. */
  readonly cameAt: number;
}

/** How it came out. */
export interface MutationEnd {
  readonly outcome: Exclude<Outcome, { ok: 'expired' }>;
  /** It was a result, of a tool that its time limit ended. */
  readonly timedOut: boolean;
  /** Why it was cut short; undefined when it came to its own end. */
  readonly stopped: StopReason | undefined;
  readonly exit: number | undefined;
  /** undefined when they are too large to be kept. */
  readonly streams: KeptAnswer['streams'] | undefined;
}

/** An operation that was done before, under the same key. */
export interface Replay {
  readonly operationId: string;
  /** The answer it had; undefined when it is not kept any more. */
  readonly answer: KeptAnswer | undefined;
  readonly record: LedgerRecord;
}

/** After these nobody knows how far it got: not to be told again as an answer. */
const isCutShort = (outcome: RecordedOutcome | null): boolean =>
  outcome === null || outcome === 'uncertain' || outcome.startsWith('killed_');

const outcomeOf = ({ outcome, timedOut, stopped }: MutationEnd): RecordedOutcome => {
  if (outcome.ok) return timedOut ? 'timeout' : 'ok';
  return outcome.error === 'uncertain' && stopped !== undefined ? `killed_${stopped}` : outcome.error;
};

/** One mutation under way. */
export class Mutation {
  readonly #request: MutationRequest;
  readonly #ledger: Ledger;
  readonly #answers: Answers;
  readonly #digest: Uint8Array;
  readonly #key: Uint8Array | null;
  #begun = false;

  constructor(request: MutationRequest, ledger: Ledger, answers: Answers) {
    this.#request = request;
    this.#ledger = ledger;
    this.#answers = answers;
    this.#digest = ledger.digests.ofRequest(request.operation, request.params);
    this.#key = request.idempotencyKey === undefined ? null : ledger.digests.ofKey(request.idempotencyKey);
  }

  get operationId(): string {
    return this.#request.operationId;
  }

  get begun(): boolean {
    return this.#begun;
  }

  get digest(): Uint8Array {
    return this.#digest;
  }

  /** True if it is the request that this digest was made of. */
  isAgain(digest: Uint8Array): boolean {
    return Buffer.from(digest).equals(this.#digest);
  }

  /** Its key is in use: by the same request, or by another one. */
  takenBy({ operationId, digest }: Pick<LedgerRecord, 'operationId' | 'digest'>): Refusal {
    return new Refusal(this.isAgain(digest) ? 'operation_running' : 'idempotency_conflict', { operationId });
  }

  /** What its key was used for before. @throws Refusal `ledger_unavailable` */
  async earlier(): Promise<LedgerRecord | undefined> {
    return this.#key === null ? undefined : this.#ledger.byKey(this.#request.user, this.#key);
  }

  /**
   * Puts it on record; the effect may begin when this resolves, and not before.
   * @throws Refusal `ledger_unavailable`
   */
  async begin(): Promise<void> {
    if (this.#begun) throw new Error('a mutation begins once');
    const { operationId, user, operation } = this.#request;
    await this.#ledger.begin({
      operationId,
      user,
      operation,
      digest: this.#digest,
      key: this.#key,
      startedAt: Date.now(),
    });
    this.#begun = true;
  }

  /** Puts its outcome on record, before it is told. What never began leaves no trace, and its key is free. */
  async finish(end: MutationEnd): Promise<void> {
    if (!this.#begun) return;
    const { operationId } = this.#request;
    const { outcome, streams } = end;
    if (streams !== undefined) this.#answers.keep(operationId, { outcome, streams });
    await this.#ledger.finish({
      operationId,
      finishedAt: Date.now(),
      outcome: outcomeOf(end),
      exit: end.exit ?? null,
      releaseKey: !end.outcome.ok && errorRow(end.outcome.error).effect === 'none',
    });
  }
}

/** The mutations under way, and those that were. */
export class Mutations {
  readonly #ledger: Ledger;
  readonly #answers: Answers;
  /** All that came in and are not answered, begun or not. */
  readonly #underWay = new Set<MutationRequest>();
  /** Keys in use, by user and key. */
  readonly #keys = new Map<string, Mutation>();

  constructor(ledger: Ledger, answers: Answers) {
    this.#ledger = ledger;
    this.#answers = answers;
  }

  /**
   * Takes a mutation in and carries it out; or tells of the one that its key belongs to.
   * @throws Refusal `operation_running`, `idempotency_conflict`, `operation_interrupted`, `ledger_unavailable`
   */
  async enter<T>(
    request: MutationRequest,
    carryOut: (mutation: Mutation) => Promise<T>,
    replay: (earlier: Replay) => Promise<T>,
  ): Promise<T> {
    this.#underWay.add(request);
    try {
      return await this.#enter(request, carryOut, replay);
    } finally {
      this.#underWay.delete(request);
    }
  }

  /** The mutation that is meant, if it is under way: it may be on record in the next moment. */
  underWay(meant: (request: MutationRequest) => boolean): MutationRequest | undefined {
    for (const request of this.#underWay) if (meant(request)) return request;
    return undefined;
  }

  async #enter<T>(
    request: MutationRequest,
    carryOut: (mutation: Mutation) => Promise<T>,
    replay: (earlier: Replay) => Promise<T>,
  ): Promise<T> {
    const mutation = new Mutation(request, this.#ledger, this.#answers);
    if (request.idempotencyKey === undefined) return carryOut(mutation);
    const name = `${request.user}:${request.idempotencyKey}`;
    const record = await mutation.earlier();
    // From here to the taking of the key nothing is waited for. One that was not on record when the ledger looked can't
    // have come and gone since: it would have had to begin after that look, whose answer came first.
    const holder = this.#keys.get(name);
    if (holder !== undefined) throw mutation.takenBy(holder);
    if (record !== undefined) return replay(this.#again(mutation, record));
    this.#keys.set(name, mutation);
    try {
      return await carryOut(mutation);
    } finally {
      this.#keys.delete(name);
    }
  }

  #again(mutation: Mutation, record: LedgerRecord): Replay {
    const { operationId, state, outcome } = record;
    // `running` without a holder: its outcome could not be put down, or not yet.
    if (!mutation.isAgain(record.digest) || state === 'running') throw mutation.takenBy(record);
    if (state === 'interrupted' || isCutShort(outcome))
      throw new Refusal('operation_interrupted', { operationId, state, outcome });
    return { operationId, answer: this.#answers.get(operationId), record };
  }
}
