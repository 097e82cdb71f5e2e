/**
 * Purpose: the handler of `POST /v1/operation/status`: what became of an operation, from the ledger and, while it is
 * kept, the answer itself.
 * Rights: none of its own; it reads one record.
 * Called by: dispatch.ts.
 * Fails: `operation_not_found` only where it is certain that no such operation began; else `ledger_unavailable`.
 */
import { errorCodes, errorRow, Refusal } from '../../protocol/errors.ts';
import { frameBytesMax } from '../../protocol/limits.ts';
import { type OperationName, operations, type Params, type Result } from '../../protocol/operations/index.ts';
import { textOf } from '../../protocol/stream-text.ts';
import type { Answers } from '../ledger/answers.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { LedgerRecord } from '../ledger/record.ts';

type Status = Result<'operation.status'>;

/** The status of the answer that a cut-short operation had, if it had one. */
const uncertainStatus = errorRow('uncertain').status;

const httpFacts = ({ state, outcome }: LedgerRecord): Pick<Status, 'httpStatus' | 'error'> => {
  if (state === 'running') return { httpStatus: null, error: null };
  if (outcome === 'ok' || outcome === 'timeout') return { httpStatus: 200, error: null };
  const error = errorCodes.find((code) => code === outcome);
  // Interrupted or killed: all that could be told of it was that it is uncertain.
  return { httpStatus: error === undefined ? uncertainStatus : errorRow(error).status, error: error ?? 'uncertain' };
};

/** The answer's fields, where they are kept and fit into one frame beside the rest. */
const resultOf = (answers: Answers, operationId: string): Pick<Status, 'result'> => {
  const kept = answers.get(operationId);
  if (kept?.outcome.ok !== true) return {};
  const texts = Object.entries(kept.outcome.streams).map(([stream, { cut }]) => [
    stream,
    textOf(kept.streams.get(stream) ?? Buffer.alloc(0), cut),
  ]);
  const result = { ...Object(kept.outcome.result), ...Object.fromEntries(texts) };
  return Buffer.byteLength(JSON.stringify(result)) < frameBytesMax / 2 ? { result } : {};
};

/** Makes the handler. */
export const operationStatusHandler =
  ({ ledger, answers }: { readonly ledger: Ledger; readonly answers: Answers }) =>
  async ({ operationId, user, idempotencyKey }: Params<'operation.status'>): Promise<Status> => {
    const record =
      operationId === undefined
        ? await ledger.byKey(user ?? -1, ledger.digests.ofKey(idempotencyKey ?? ''))
        : await ledger.byId(operationId);
    if (record === undefined) throw new Refusal('operation_not_found');
    const { state, outcome, startedAt, finishedAt, exit } = record;
    const action = operations[record.operation as OperationName].audit;
    return {
      operationId: record.operationId,
      kind: action.split('.')[0] ?? action,
      action,
      state,
      outcome,
      ...httpFacts(record),
      startedAt: new Date(startedAt).toISOString(),
      finishedAt: finishedAt === null ? null : new Date(finishedAt).toISOString(),
      ...resultOf(answers, record.operationId),
      ...(exit === null ? {} : { exitCode: exit }),
    };
  };
