import type { ExpiredResult, Outcome } from '../protocol/envelope.ts';
import type { ErrorCode } from '../protocol/errors.ts';
import { eventCreditBytes } from '../protocol/limits.ts';
import { ProtocolViolation } from '../protocol/msgpack-check.ts';
import { StreamText } from './stream-text.ts';

/** How a call ended: with the worker's result or refusal, or with nothing that could be known. */
export type CallOutcome =
  | {
      readonly came: 'result';
      readonly result: unknown;
      readonly streams: Readonly<Record<string, string>>;
      readonly replayOf: string | undefined;
    }
  | {
      readonly came: 'error';
      readonly code: ErrorCode;
      readonly details: unknown;
      readonly replayOf: string | undefined;
    }
  /** A replay of a result that is not kept any more. */
  | { readonly came: 'expired'; readonly result: ExpiredResult | null; readonly replayOf: string }
  | { readonly came: 'nothing' };

/** One request on the link, until its reply. */
export class Call {
  readonly outcome: Promise<CallOutcome>;
  readonly #settle: (outcome: CallOutcome) => void;
  readonly #streams: ReadonlyMap<string, StreamText>;
  #taken = 0;

  constructor(streamNames: readonly string[], outputBytesMax: number) {
    const { promise, resolve } = Promise.withResolvers<CallOutcome>();
    this.outcome = promise;
    this.#settle = resolve;
    this.#streams = new Map(streamNames.map((name) => [name, new StreamText(outputBytesMax)]));
  }

  /**
   * Takes a piece of output in; returns how much credit to grant now. It is granted in large portions, to save
   * messages, and also for a call that was given up: its reply comes only after its output.
   * @throws ProtocolViolation
   */
  take(stream: string, data: Uint8Array): number {
    const text = this.#streams.get(stream);
    if (text === undefined) throw new ProtocolViolation('an event of a stream that the operation does not have');
    text.append(data);
    this.#taken += data.length;
    if (this.#taken < eventCreditBytes / 2) return 0;
    const granted = Math.min(this.#taken, eventCreditBytes);
    this.#taken -= granted;
    return granted;
  }

  /**
   * The reply came.
   * @throws ProtocolViolation when it does not fit what was sent before it
   */
  finish(outcome: Outcome): void {
    const { replayOf } = outcome;
    if (outcome.ok === false) {
      this.#settle({ came: 'error', code: outcome.error, details: outcome.details, replayOf });
      return;
    }
    if (outcome.ok === 'expired') {
      this.#settle({ came: 'expired', result: outcome.result, replayOf: outcome.replayOf });
      return;
    }
    const ends = new Map(Object.entries(outcome.streams));
    if (ends.size !== this.#streams.size) throw new ProtocolViolation('a reply with other streams than its operation');
    const streams: Record<string, string> = {};
    for (const [name, text] of this.#streams) {
      const end = ends.get(name);
      if (end?.bytes !== text.length) throw new ProtocolViolation('a stream is missing or incomplete');
      streams[name] = text.text(end.cut);
    }
    this.#settle({ came: 'result', result: outcome.result, streams, replayOf });
  }

  /** Nobody waits any longer: what comes of it can't be known. */
  giveUp(): void {
    for (const text of this.#streams.values()) text.forget();
    this.#settle({ came: 'nothing' });
  }
}
