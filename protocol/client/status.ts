import { z } from 'zod';
import { errors } from '../errors.ts';
import type { Operation } from '../operation.ts';
import { operationStates } from '../operations/operation-status.ts';
import { operationId } from '../values.ts';
import type { Exchange, HttpAnswer } from './exchange.ts';
import { refused } from './interpret.ts';
import type { Done, Reference, Resolution, Unresolved } from './outcome.ts';
import { errorBodyOf, isErrorCode, refusalOf } from './refusal.ts';
import { partialResult, wholeResult } from './result.ts';

/** What a record is found by. */
export type RecordKey = { readonly operationId: string } | { readonly user: number; readonly idempotencyKey: string };

/** What the ledger says of an operation; open for fields and words of a newer service. */
const record = z.object({
  operationId,
  action: z.string(),
  state: z.enum(operationStates),
  outcome: z.string().nullish(),
  httpStatus: z.int().nullish(),
  error: z.string().nullish(),
  result: z.record(z.string(), z.unknown()).nullish(),
});

type LedgerRecord = z.output<typeof record>;

/** How the outcome of a run begins that was ended because nobody could be told its answer any more. */
const killed = 'killed_';

/** What one look into the ledger tells: what became of it, or that there is no record. */
export type Look<Name extends string, Row extends Operation> = Resolution<Name, Row> | { readonly kind: 'no_record' };

/** Nothing could be found out. */
export const unresolved = <Name extends string>(
  reference: Reference<Name>,
  why: Unresolved<Name>['why'],
  code?: Unresolved<Name>['code'],
): Unresolved<Name> => ({ ...reference, why, code, kind: 'unresolved' });

const finishedWell = <Row extends Operation>(row: Row, { operationId: id, result }: LedgerRecord): Done<Row> => {
  const body = result ?? {};
  const whole = wholeResult(row, body);
  if (whole !== undefined)
    return { kind: 'done', operationId: id, replayed: true, outputExpired: false, result: whole };
  return { kind: 'done', operationId: id, replayed: true, outputExpired: true, result: partialResult(row, body) };
};

const finished = <Name extends string, Row extends Operation>(
  row: Row,
  found: LedgerRecord,
  reference: Reference<Name>,
): Resolution<Name, Row> => {
  const { operationId: id, outcome, httpStatus, error } = found;
  if (outcome?.startsWith(killed)) return { kind: 'interrupted', operationId: id, outcome };
  if (httpStatus === 200 && (error ?? undefined) === undefined) return finishedWell(row, found);
  // A code that this version doesn't know, or none: what it means can't be guessed.
  if (!isErrorCode(error ?? '') || errors[error as keyof typeof errors].status !== httpStatus)
    return unresolved(reference, 'wrong_answer');
  const code = error as keyof typeof errors;
  const { effect, text: message } = errors[code];
  const told = refused({ code, effect, message, details: undefined, operationId: id, replayed: true }, reference);
  if (told.kind === 'failed' || told.kind === 'incomplete') return told;
  // It is finished, and yet its outcome isn't known: nobody will ever know.
  return { kind: 'interrupted', operationId: id, outcome: code };
};

const recordOf = ({ status, body }: HttpAnswer): LedgerRecord | undefined =>
  status === 200 ? record.safeParse(body).data : undefined;

/** Reads the answer of the ledger to a question by `key`. */
export const interpretStatus = <Name extends string, Row extends Operation>(
  row: Row,
  came: Exchange,
  key: RecordKey,
  reference: Reference<Name>,
): Look<Name, Row> => {
  if (came.came === 'silence') return unresolved(reference, came.sent ? came.why : 'not_sent');
  const { answer } = came;
  const found = recordOf(answer);
  if (found === undefined) {
    if (answer.status === 404 && errorBodyOf(answer)?.error === 'operation_not_found') return { kind: 'no_record' };
    const code = refusalOf(answer)?.code;
    return code === undefined ? unresolved(reference, 'wrong_answer') : unresolved(reference, 'refused', code);
  }
  // A record of something else: the key was used for another operation too, or something mixes answers up.
  const isAnother = 'operationId' in key && key.operationId !== found.operationId;
  if (isAnother || found.action !== row.audit) return unresolved(reference, 'wrong_answer');
  const known = { ...reference, operationId: found.operationId, recorded: true };
  switch (found.state) {
    case 'running':
      return { ...known, kind: 'running' };
    case 'interrupted':
      return { kind: 'interrupted', operationId: found.operationId, outcome: found.outcome ?? undefined };
    case 'finished':
      return finished(row, found, known);
  }
};
