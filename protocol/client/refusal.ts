import { z } from 'zod';
import { type ErrorCode, errorRow, errors } from '../errors.ts';
import type { HttpAnswer } from './exchange.ts';
import type { RefusalWith } from './outcome.ts';

/** The closed shape of every error, open for fields of a newer service. */
const shape = z.object({ error: z.string(), message: z.string(), details: z.unknown().optional() });

/** An error answer; `error` may be a code that this version doesn't know. */
export type ErrorBody = z.output<typeof shape>;

/** The error that an answer is, if it has the shape of one. */
export const errorBodyOf = ({ status, body }: HttpAnswer): ErrorBody | undefined =>
  status >= 400 ? shape.safeParse(body).data : undefined;

/** A code of the closed list. */
export const isErrorCode = (word: string): word is ErrorCode => Object.hasOwn(errors, word);

/** What the table says of a code, as a caller gets it. Details that don't fit their code's shape are left out. */
export const refusalWith = <Code extends ErrorCode>(
  code: Code,
  message: string,
  given?: unknown,
): RefusalWith<Code> => {
  const { retry, details } = errorRow(code);
  // The table's own row: what the type says of a code is derived from the same row.
  return { code, retry, message, details: details?.safeParse(given).data } as RefusalWith<Code>;
};

/**
 * The code of an answer and the error body, if this service gave it: a code of the list, with the status that the
 * list gives it. What stands between the service and its caller has other words, or another status.
 */
export const refusalOf = (answer: HttpAnswer): { readonly code: ErrorCode; readonly body: ErrorBody } | undefined => {
  const body = errorBodyOf(answer);
  if (body === undefined || !isErrorCode(body.error) || errors[body.error].status !== answer.status) return undefined;
  return { code: body.error, body };
};
