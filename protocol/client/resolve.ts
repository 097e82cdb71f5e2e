import { errorRow } from '../errors.ts';
import type { Operation } from '../operation.ts';
import type { Exchange } from './exchange.ts';
import type { Reference, Resolution } from './outcome.ts';
import { interpretStatus, type Look, type RecordKey, unresolved } from './status.ts';

/** How long to go on asking. */
export interface ResolveOptions {
  /** While it isn't decided, ask again for this long, ms; 0 asks once. One question takes at most `askMs` more. */
  readonly waitMs: number;
  /** Ends it early; then the last answer is what there is. */
  readonly signal?: AbortSignal | undefined;
}

/** How long one question to the ledger may take, ms. */
export const askMs = 10_000;

/** Between two questions, ms: there is no event to wait for on the other side of a broken connection. */
const pauseMinMs = 100;
const pauseMaxMs = 2_000;

/** As long as this every ledger keeps its records (a day is the shortest retention that can be set), ms. */
const keptMs = 24 * 60 * 60 * 1_000;

/** Asks the ledger one question. */
export type Ask = (key: RecordKey) => Promise<Exchange>;

/**
 * What it means that there is no record.
 *
 * With an operation id the service itself has answered, so the request is not on its way to the gateway any more,
 * and whatever the gateway sent on the link is ahead of this question there: the next link is only taken in when the
 * last one was read to its end. Without one the request may still lie in a buffer of the network, or of a proxy, and
 * arrive at any time.
 */
const withoutRecord = <Name extends string>(reference: Reference<Name>): Resolution<Name, never> => {
  if (reference.recorded) return unresolved(reference, 'record_lost');
  if (Date.now() - reference.sentAt >= keptMs) return unresolved(reference, 'too_old');
  if (reference.operationId !== undefined) return { kind: 'never_began' };
  return { ...reference, kind: 'not_seen' };
};

/** Looks once: by id, and where that leads nowhere by key, under which an earlier request may have begun. */
const lookOnce = async <Name extends string, Row extends Operation>(
  row: Row,
  reference: Reference<Name>,
  ask: Ask,
): Promise<Resolution<Name, Row>> => {
  const { operationId, user, idempotencyKey } = reference;
  const keys: RecordKey[] = [
    ...(operationId === undefined ? [] : [{ operationId }]),
    ...(user === undefined ? [] : [{ user, idempotencyKey }]),
  ];
  let found: Look<Name, Row> = unresolved(reference, 'nothing_to_ask_by');
  for (const key of keys) {
    found = interpretStatus(row, await ask(key), key, reference);
    if (found.kind !== 'no_record') return found;
  }
  return found.kind === 'no_record' ? withoutRecord(reference) : found;
};

/** True when asking again tells nothing else. */
const isDecided = (found: Resolution<string, Operation>): boolean => {
  switch (found.kind) {
    case 'running':
    case 'not_seen':
      return false;
    case 'unresolved':
      if (['too_old', 'record_lost', 'nothing_to_ask_by'].includes(found.why)) return true;
      return found.code !== undefined && errorRow(found.code).retry === 'change';
    default:
      return true;
  }
};

const pause = (ms: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener('abort', end);
  });

/** Asks until it is decided, the time is over or the signal comes; the last answer is the result. */
export const resolveReference = async <Name extends string, Row extends Operation>(
  row: Row,
  reference: Reference<Name>,
  ask: Ask,
  { waitMs, signal }: ResolveOptions,
): Promise<Resolution<Name, Row>> => {
  const end = performance.now() + waitMs;
  let known: Reference<Name> = reference;
  for (let pauseMs = pauseMinMs; ; pauseMs = Math.min(2 * pauseMs, pauseMaxMs)) {
    const found = await lookOnce(row, known, ask);
    if (found.kind === 'running') known = found;
    const leftMs = end - performance.now();
    if (isDecided(found) || leftMs <= 0 || signal?.aborted) return found;
    await pause(Math.min(pauseMs, leftMs), signal);
    if (signal?.aborted) return found;
  }
};
