import { type Effect, type ErrorCode, errors } from '../errors.ts';
import type { Operation } from '../operation.ts';
import { operationId } from '../values.ts';
import type { Exchange, HttpAnswer } from './exchange.ts';
import type {
  CodeWith,
  Done,
  MutationOutcome,
  NotSent,
  ReadOutcome,
  Reference,
  RefusalWith,
  Silence,
  Uncertain,
} from './outcome.ts';
import { refusalOf, refusalWith } from './refusal.ts';
import { partialResult, wholeResult } from './result.ts';

/** What is told when the request did not leave whole. */
const notSent: NotSent = {
  code: 'not_sent',
  retry: 'later',
  message: 'The request could not be sent; nothing was done.',
  details: undefined,
};

/** The operation that an answer is about; undefined when its head and its body tell different ones. */
const idOf = ({ operationId: inHead, body }: HttpAnswer): string | undefined => {
  const inBody = operationId.safeParse(body?.['operationId']).data;
  return inHead !== undefined && inBody !== undefined && inHead !== inBody ? undefined : (inHead ?? inBody);
};

const uncertain = <Name extends string>(
  reference: Reference<Name>,
  id: string | undefined,
  why: Silence | 'told',
  code?: CodeWith<'unknown'>,
): Uncertain<Name> => ({ ...reference, operationId: id, why, code, kind: 'uncertain' });

/** A 200 of this service; undefined for one that doesn't fit the row. */
const doneOf = <Row extends Operation>(row: Row, answer: HttpAnswer): Done<Row> | undefined => {
  const { body } = answer;
  const id = idOf(answer);
  if (body === undefined || id === undefined) return undefined;
  if (body['outputExpired'] === true) {
    const result = partialResult(row, body);
    return { kind: 'done', operationId: id, replayed: true, outputExpired: true, result };
  }
  const result = wholeResult(row, body);
  const replayed = answer.replayed || body['replayed'] === true;
  return result && { kind: 'done', operationId: id, replayed, outputExpired: false, result };
};

/** A refusal in the words of this service. */
export interface ToldRefusal {
  readonly code: ErrorCode;
  readonly effect: Effect;
  readonly message: string;
  readonly details: unknown;
  readonly operationId: string | undefined;
  readonly replayed: boolean;
}

/** What a refusal of this effect makes of a mutation. */
export const refused = <Name extends string>(
  told: ToldRefusal,
  reference: Reference<Name>,
): Exclude<MutationOutcome<Name, Operation>, Done<Operation>> => {
  const { code, effect, message, details, operationId: id, replayed } = told;
  // The effect is the one of the code's row, so that the code is one with that effect.
  const words = <Wanted extends Effect>(): RefusalWith<CodeWith<Wanted>> =>
    refusalWith(code, message, details) as RefusalWith<ErrorCode> as RefusalWith<CodeWith<Wanted>>;
  // In these two the request was turned down in favour of another operation; an id of its own would lead nowhere.
  const other = Object(details) as { readonly operationId?: unknown; readonly outcome?: unknown };
  const otherId = operationId.safeParse(other.operationId).data;
  switch (effect) {
    case 'none':
      return { kind: 'failed', operationId: id, replayed, ...words<'none'>() };
    case 'incomplete':
      return { kind: 'incomplete', operationId: id, replayed, ...words<'incomplete'>() };
    case 'running':
      return { ...reference, operationId: otherId, recorded: true, kind: 'running' };
    case 'interrupted': {
      const outcome = typeof other.outcome === 'string' ? other.outcome : undefined;
      return { kind: 'interrupted', operationId: otherId, outcome };
    }
    case 'unknown':
      return uncertain(reference, id, 'told', words<'unknown'>().code);
  }
};

/** What came of a mutation that was answered, as far as the answer can be believed. */
const answered = <Name extends string, Row extends Operation>(
  row: Row,
  answer: HttpAnswer,
  reference: Reference<Name>,
): MutationOutcome<Name, Row> => {
  const id = idOf(answer);
  if (answer.status === 200) return doneOf(row, answer) ?? uncertain(reference, id, 'wrong_answer');
  const refusal = refusalOf(answer);
  if (refusal === undefined) return uncertain(reference, id, 'wrong_answer');
  const { code, body } = refusal;
  const replayed = answer.replayed || answer.body?.['replayed'] === true;
  const { message, details } = body;
  return refused({ code, effect: errors[code].effect, message, details, operationId: id, replayed }, reference);
};

/** How a mutation came out. */
export const interpretMutation = <Name extends string, Row extends Operation>(
  row: Row,
  came: Exchange,
  reference: Reference<Name>,
): MutationOutcome<Name, Row> => {
  const outcome =
    came.came === 'answer' ? answered(row, came.answer, reference) : uncertain(reference, came.operationId, came.why);
  // Whatever was answered to a request that the service can't have had whole.
  if (outcome.kind === 'uncertain' && !came.sent)
    return { kind: 'failed', operationId: undefined, replayed: false, ...notSent };
  return outcome;
};

/** How a read came out. */
export const interpretRead = <Row extends Operation>(row: Row, came: Exchange): ReadOutcome<Row> => {
  if (came.came === 'silence') return came.sent ? { kind: 'no_answer', why: came.why } : { kind: 'failed', ...notSent };
  const { answer } = came;
  const refusal = refusalOf(answer);
  if (refusal) return { kind: 'failed', ...refusalWith(refusal.code, refusal.body.message, refusal.body.details) };
  const result = answer.status === 200 && answer.body ? wholeResult(row, answer.body) : undefined;
  return result === undefined ? { kind: 'no_answer', why: 'wrong_answer' } : { kind: 'done', result };
};
