import type { Logger } from 'pino';
import type { AuditQueue } from '../protocol/audit.ts';
import { errorRow, Refusal } from '../protocol/errors.ts';
import { killLimitMs, linkSlackMs, termGraceMs } from '../protocol/limits.ts';
import { errorsOf, type Operation, type TimeLimits } from '../protocol/operation.ts';
import { mintOperationId } from '../protocol/operation-id.ts';
import type { OperationName } from '../protocol/operations/index.ts';
import { type Answer, errorAnswer, fixedAnswer, resultAnswer } from './answer.ts';
import type { CallOutcome } from './call.ts';
import type { WorkerLink } from './worker-link.ts';

/** What an invocation needs. */
export interface InvokeParts {
  readonly link: WorkerLink;
  readonly audit: AuditQueue;
  readonly log: Logger;
  readonly stage: { readonly draining: boolean };
  /** When an operation's outcome counts as unknown, ms. */
  readonly deadlineOf: (row: Operation) => number;
}

/** One operation with its checked request. */
export interface Invocation {
  readonly name: OperationName;
  readonly row: Operation;
  readonly params: unknown;
  readonly user: number | undefined;
  /** The caller's name for it; of mutations only. */
  readonly idempotencyKey: string | undefined;
  /** When the request came in, on the monotonic clock. */
  readonly started: number;
}

/** How long a repeated read waits for a new link, ms. */
const readRepeatWaitMs = 1_000;

/** The service's own deadlines: the operation's time limit, the kill grace and some slack, so that a slow tool is `timedOut` and not `uncertain`. */
export const deadlinesFor =
  (limits: TimeLimits) =>
  (row: Operation): number =>
    row.timeLimitMs(limits) + termGraceMs + killLimitMs + linkSlackMs;

const refuseWhileUnready = ({ stage, link, audit }: InvokeParts, row: Operation): void => {
  if (stage.draining) throw new Refusal('draining');
  if (!link.ready) throw new Refusal('worker_unavailable');
  if (link.full || (row.effect === 'mutate' && audit.full)) throw new Refusal('overloaded');
};

const send = ({ link, deadlineOf }: InvokeParts, invocation: Invocation, operationId?: string) => {
  const { name, row, params, idempotencyKey } = invocation;
  const { streams } = row;
  return link.call({ operation: name, params, operationId, idempotencyKey, streams, deadlineMs: deadlineOf(row) });
};

/** The worker's word for the caller; what does not fit the operation's row does not get out. */
const answerOf = (
  { log }: InvokeParts,
  { name, row }: Invocation,
  outcome: Exclude<CallOutcome, { came: 'nothing' }>,
  minted: string | undefined,
): Answer => {
  const { replayOf } = outcome;
  const replayed = replayOf !== undefined;
  // A replay tells of the operation that was done, not of this one, which was not.
  const operationId = replayOf ?? minted;
  const told = { operationId, replayed };
  if (outcome.came === 'expired') return resultAnswer({ ...outcome.result, outputExpired: true }, told);
  if (outcome.came === 'result') {
    const result = row.result.safeParse(outcome.result);
    if (result.success) {
      const fields = { ...Object(result.data), ...outcome.streams };
      return row.fixedReply === true ? fixedAnswer(fields, told) : resultAnswer(fields, told);
    }
    log.error({ operation: name, operationId }, 'the worker gave a result of a wrong shape');
    return errorAnswer('internal', told);
  }
  const { code } = outcome;
  if (!errorsOf(row).includes(code)) {
    log.error({ operation: name, operationId, code }, 'the worker gave a code that the operation cannot have');
    return errorAnswer('internal', told);
  }
  if (outcome.details === undefined) return errorAnswer(code, told);
  const details = errorRow(code).details?.safeParse(outcome.details);
  if (details?.success !== true) log.error({ operation: name, operationId, code }, 'the worker gave wrong details');
  return errorAnswer(code, { ...told, details: details?.data });
};

const mutate = async (parts: InvokeParts, invocation: Invocation): Promise<Answer> => {
  const operationId = mintOperationId();
  const outcome = await send(parts, invocation, operationId);
  if (outcome.came !== 'nothing') return answerOf(parts, invocation, outcome, operationId);
  const { row, user, started } = invocation;
  parts.audit.add({
    action: row.audit,
    ...(user === undefined ? {} : { user }),
    ms: Math.round(performance.now() - started),
    status: 'uncertain',
    reason: 'uncertain',
    operationId,
  });
  return errorAnswer('uncertain', { operationId });
};

const read = async (parts: InvokeParts, invocation: Invocation): Promise<Answer> => {
  const outcome = await send(parts, invocation);
  if (outcome.came !== 'nothing') return answerOf(parts, invocation, outcome, undefined);
  const { promise: waited, resolve } = Promise.withResolvers<void>();
  const patience = setTimeout(resolve, readRepeatWaitMs);
  await Promise.race([parts.link.whenReady(), waited]);
  clearTimeout(patience);
  refuseWhileUnready(parts, invocation.row);
  const repeated = await send(parts, invocation);
  if (repeated.came === 'nothing') throw new Refusal('worker_unavailable');
  return answerOf(parts, invocation, repeated, undefined);
};

/**
 * Has the worker do an operation. A mutation is minted, sent once, and `uncertain` when its reply does not come;
 * a read is repeated once.
 * @throws Refusal when nothing was done
 */
export const invoke = async (parts: InvokeParts, invocation: Invocation): Promise<Answer> => {
  refuseWhileUnready(parts, invocation.row);
  return invocation.row.effect === 'mutate' ? mutate(parts, invocation) : read(parts, invocation);
};
