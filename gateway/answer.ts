import { STATUS_CODES } from 'node:http';
import { type ErrorCode, errorRow } from '../protocol/errors.ts';

/** What goes back to a caller. */
export interface Answer {
  readonly status: number;
  /** JSON; undefined for an answer without a body. */
  readonly body: string | undefined;
  /** Of a mutation that was minted. */
  readonly operationId?: string | undefined;
  /** It was given before, under the same Idempotency-Key. */
  readonly replayed?: boolean;
}

/** What an error answer tells besides its code. */
export interface ErrorParts {
  /** In place of the code's fixed sentence. */
  readonly message?: string;
  readonly operationId?: string | undefined;
  readonly replayed?: boolean;
  readonly details?: unknown;
}

/** Absent from a body unless true. */
const whenTrue = (flag: boolean): true | undefined => flag || undefined;

/** The closed shape of every error: `{"error","message"[,"operationId"][,"replayed"][,"details"]}`. */
export const errorAnswer = (code: ErrorCode, parts: ErrorParts = {}): Answer => {
  const { status, text } = errorRow(code);
  const { message = text, operationId, replayed = false, details } = parts;
  const body = { error: code, message, operationId, replayed: whenTrue(replayed), details };
  return { status, body: JSON.stringify(body), operationId, replayed };
};

/** The answer of an operation that came out. */
export const resultAnswer = (
  fields: object,
  { operationId, replayed }: { readonly operationId: string | undefined; readonly replayed: boolean },
): Answer => ({
  status: 200,
  body: JSON.stringify({ ...fields, ...(operationId && { operationId }), replayed: whenTrue(replayed) }),
  operationId,
  replayed,
});

/** The same, of an operation whose body is fixed: its headers tell the rest. */
export const fixedAnswer = (
  fields: object,
  { operationId, replayed }: { readonly operationId: string | undefined; readonly replayed: boolean },
): Answer => ({ status: 200, body: JSON.stringify(fields), operationId, replayed });

/** The header fields of an answer. */
export const headersOf = (answer: Answer): Record<string, string | number> => {
  const headers: Record<string, string | number> = {};
  if (answer.body !== undefined) {
    headers['Content-Type'] = 'application/json; charset=utf-8';
    headers['Content-Length'] = Buffer.byteLength(answer.body);
  }
  // RFC 9110, 15.5.2: a 401 names the scheme.
  if (answer.status === 401) headers['WWW-Authenticate'] = 'Bearer';
  if (answer.operationId !== undefined) headers['Operation-Id'] = answer.operationId;
  if (answer.replayed === true) headers['Idempotency-Replayed'] = 'true';
  return headers;
};

/** An answer as bytes, for a connection that has no response object; the connection ends after it. */
export const rawAnswer = (code: ErrorCode): string => {
  const answer = errorAnswer(code);
  const fields = Object.entries({ ...headersOf(answer), Connection: 'close' }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  return [`HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status]}`, ...fields, '', answer.body].join('\r\n');
};
