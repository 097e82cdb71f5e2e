/**
 * Purpose: the handler of `POST /v1/operation/status`: what became of an operation, from the ledger and, while it is
 * kept, the answer itself.
 * Rights: none of its own; it reads one record.
 * Called by: dispatch.ts.
 * Fails: `operation_not_found` only where it is certain that no such operation began; else `ledger_unavailable`.
 */
import type { AuditAction } from '../../protocol/audit.ts';
import { errorCodes, errorRow, Refusal } from '../../protocol/errors.ts';
import { frameBytesMax } from '../../protocol/limits.ts';
import { type OperationName, operations, type Params, type Result } from '../../protocol/operations/index.ts';
import { textOf } from '../../protocol/stream-text.ts';
import type { Answers } from '../ledger/answers.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { MutationRequest, Mutations } from '../ledger/mutations.ts';
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

type Asked = Params<'operation.status'>;

const actionOf = (operation: string): AuditAction => operations[operation as OperationName].audit;

const kindOf = (action: string): string => action.split('.')[0] ?? action;

/** One that came in and isn't on record yet: it may be in the next moment, so that it can't be said to have never begun. */
const notYetBegun = ({ operationId, operation, cameAt }: MutationRequest): Status => {
  const action = actionOf(operation);
  return {
    operationId,
    kind: kindOf(action),
    action,
    state: 'running',
    outcome: null,
    httpStatus: null,
    error: null,
    startedAt: new Date(cameAt).toISOString(),
    finishedAt: null,
  };
};

const meant =
  ({ operationId, user, idempotencyKey }: Asked) =>
  (request: MutationRequest): boolean =>
    operationId === undefined
      ? request.user === user && request.idempotencyKey === idempotencyKey
      : request.operationId === operationId;

const lookUp = (ledger: Ledger, { operationId, user, idempotencyKey }: Asked): Promise<LedgerRecord | undefined> =>
  operationId === undefined
    ? ledger.byKey(user ?? -1, ledger.digests.ofKey(idempotencyKey ?? ''))
    : ledger.byId(operationId);

interface StatusDependencies {
  readonly ledger: Ledger;
  readonly answers: Answers;
  readonly mutations: Mutations;
}

/** Makes the handler. */
export const operationStatusHandler =
  ({ ledger, answers, mutations }: StatusDependencies) =>
  async (asked: Asked): Promise<Status> => {
    // Before the ledger is asked: what is under way now and not on record then may be by the time that this is told.
    const underWay = mutations.underWay(meant(asked));
    const record = await lookUp(ledger, asked);
    if (record === undefined && underWay !== undefined) return notYetBegun(underWay);
    if (record === undefined) throw new Refusal('operation_not_found');
    const { operationId, state, outcome, startedAt, finishedAt, exit } = record;
    const action = actionOf(record.operation);
    return {
      operationId,
      kind: kindOf(action),
      action,
      state,
      outcome,
      ...httpFacts(record),
      startedAt: new Date(startedAt).toISOString(),
      finishedAt: finishedAt === null ? null : new Date(finishedAt).toISOString(),
      ...resultOf(answers, operationId),
      ...(exit === null ? {} : { exitCode: exit }),
    };
  };
