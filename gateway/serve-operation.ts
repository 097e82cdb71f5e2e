import type { IncomingMessage, ServerResponse } from 'node:http';
import { auditStatusOf } from '../protocol/audit.ts';
import { check, checkSizes } from '../protocol/check.ts';
import { Refusal } from '../protocol/errors.ts';
import { faultOf } from '../protocol/fault.ts';
import type { Operation, SizeLimits } from '../protocol/operation.ts';
import type { OperationName } from '../protocol/operations/index.ts';
import { userOf } from '../protocol/user-of.ts';
import { idempotencyKey } from '../protocol/values.ts';
import { type Answer, errorAnswer } from './answer.ts';
import { headerValues } from './auth.ts';
import { fieldsOf, readBody } from './body.ts';
import type { Connections } from './connections.ts';
import { type InvokeParts, invoke } from './invoke.ts';

/** What the routes of the operation table need. */
export interface ServeParts extends InvokeParts {
  readonly connections: Connections;
  readonly bodyBytesMax: number;
  readonly sizes: SizeLimits;
}

/** What is thrown on the way is a refusal or a bug. */
const refusalOf = ({ log }: ServeParts, error: unknown): Refusal => {
  if (error instanceof Refusal) return error;
  log.error(faultOf(error), 'something unforeseen went wrong');
  return new Refusal('internal');
};

/**
 * The caller's name for a mutation; on other routes the header has no meaning.
 * @throws Refusal `bad_request` for one that is malformed or given twice
 */
const keyOf = (request: IncomingMessage, row: Operation): string | undefined => {
  const values = row.effect === 'mutate' ? headerValues(request, 'idempotency-key') : [];
  if (values.length === 0) return undefined;
  const key = values.length === 1 ? idempotencyKey.safeParse(values[0]) : undefined;
  if (key?.success !== true)
    throw new Refusal(
      'bad_request',
      undefined,
      'The header "Idempotency-Key" must be 1 to 128 of [A-Za-z0-9._:-], once.',
    );
  return key.data;
};

/**
 * Serves one request of an operation's route: body, schema, worker, answer, in the order of checks of the
 * specification. What is refused here never reached the worker, and is audited here.
 */
export const serveOperation = async (
  parts: ServeParts,
  name: OperationName,
  row: Operation,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> => {
  const started = performance.now();
  const elapsed = () => Math.round(performance.now() - started);
  let user: number | undefined;
  let answer: Answer;
  try {
    const body = await readBody(request, response, parts.bodyBytesMax);
    // The client is gone before it asked for anything: there is nobody to answer and nothing to audit.
    if (body === undefined) return;
    const fields = fieldsOf(body, row.params.shape);
    user = userOf(fields);
    const params = check(row.params, fields);
    checkSizes(row, params, parts.sizes);
    answer = await invoke(parts, { name, row, params, user, idempotencyKey: keyOf(request, row), started });
  } catch (error) {
    const { code, message, details } = refusalOf(parts, error);
    parts.audit.add({
      action: row.audit,
      ...(user === undefined ? {} : { user }),
      ms: elapsed(),
      status: auditStatusOf(code),
      reason: code,
    });
    answer = errorAnswer(code, { message, details });
  }
  parts.connections.send(request, response, answer);
  parts.log.debug({ method: request.method, route: row.route, status: answer.status, ms: elapsed() }, 'answered');
};
