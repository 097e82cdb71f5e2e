import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { auditStatusOf } from '../protocol/audit.ts';
import { check } from '../protocol/check.ts';
import { Refusal } from '../protocol/errors.ts';
import { faultOf } from '../protocol/fault.ts';
import { eventStreamsMax, keepAliveCommentMs } from '../protocol/limits.ts';
import { errorsOf } from '../protocol/operation.ts';
import { processStream as row } from '../protocol/operations/process-stream.ts';
import { userOf } from '../protocol/user-of.ts';
import { errorAnswer } from './answer.ts';
import { headerValues } from './auth.ts';
import { eventsOf, type Position, positionOf, type Turn } from './process-events.ts';
import type { ServeParts } from './serve-operation.ts';

/** Streams that are open, of all clients: each has a request under way at the worker most of the time. */
let open = 0;

/** The query's fields; each at most once. @throws Refusal `bad_request` */
const queryOf = ({ url = '' }: IncomingMessage): { readonly processId: unknown; readonly from: string | undefined } => {
  const fields = new URLSearchParams(url.split('?').slice(1).join('?'));
  const names = [...fields.keys()];
  if (new Set(names).size < names.length || names.some((name) => name !== 'processId' && name !== 'from'))
    throw new Refusal('bad_request', undefined, 'The query may have "processId" and "from", each once.');
  return { processId: fields.get('processId') ?? undefined, from: fields.get('from') ?? undefined };
};

/** A refusal that the worker has audited. */
class WorkersRefusal extends Refusal {}

/** One turn from the worker; undefined when none came. @throws Refusal */
const turn = async (parts: ServeParts, params: object, signal: AbortSignal): Promise<Turn | undefined> => {
  const { link, stage, deadlineOf } = parts;
  if (stage.draining) throw new Refusal('draining');
  if (!link.ready) throw new Refusal('worker_unavailable');
  if (link.full) throw new Refusal('overloaded');
  const none = { operationId: undefined, idempotencyKey: undefined, streams: [] };
  const call = { operation: 'process.stream' as const, params, ...none, deadlineMs: deadlineOf(row), signal };
  const outcome = await link.call(call);
  if (outcome.came === 'result') return row.result.parse(outcome.result);
  if (outcome.came !== 'error') return undefined;
  if (errorsOf(row).includes(outcome.code)) throw new WorkersRefusal(outcome.code);
  throw new Refusal('internal');
};

/** What is still to be known of a turn that was sent. */
interface Sent {
  readonly position: Position;
  readonly over: boolean;
  /** The client has not taken it yet. */
  readonly waits: boolean;
}

/** As bytes: a text that waits for a slow client is kept twice, as it is and as it goes out. */
const send = (response: ServerResponse, current: Turn): Sent => {
  const { text, position } = eventsOf(current);
  if (!response.headersSent)
    response.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8', 'Cache-Control': 'no-store' });
  const waits = !response.write(Buffer.from(text === '' ? ': keep-alive\n\n' : text));
  return { position, over: current.termination !== null, waits };
};

/**
 * Asks for a turn and sends it; undefined when none came, or nobody is there any more. A function of its own: while a client is waited for, nothing
 * of the turn is held but its bytes.
 * @throws Refusal
 */
const sendNext = async (
  parts: ServeParts,
  params: object,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<Sent | undefined> => {
  const current = await turn(parts, params, signal);
  return current === undefined || signal.aborted ? undefined : send(response, current);
};

/** Resolves when the client can take more; a client that takes nothing for too long is dropped. */
const taken = async ({ connections }: ServeParts, response: ServerResponse, signal: AbortSignal): Promise<void> => {
  if (signal.aborted) return;
  connections.bound(response);
  await once(response, 'drain', { signal }).catch(() => undefined);
  response.socket?.setTimeout(0);
};

/** Turn after turn, each asked for when the last one is with the client: a slow one costs no more memory here. */
const follow = async (
  parts: ServeParts,
  processId: unknown,
  first: Sent,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> => {
  let last: Sent | undefined = first;
  while (last !== undefined) {
    if (last.waits) await taken(parts, response, signal);
    if (last.over || signal.aborted) return;
    last = await sendNext(parts, { processId, ...last.position, waitMs: keepAliveCommentMs }, response, signal);
  }
};

/** Serves `GET /v1/process/stream`: Server-Sent Events until the process has ended or the client is gone. */
export const serveStream = async (
  parts: ServeParts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> => {
  const started = performance.now();
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  open += 1;
  let user: number | undefined;
  try {
    if (open > eventStreamsMax) throw new Refusal('overloaded');
    const { processId, from } = queryOf(request);
    user = userOf({ processId });
    // A client that reconnects says where it was, whatever its address says (the HTML standard, 9.2.3).
    const position: Position = positionOf(headerValues(request, 'last-event-id')[0] ?? from);
    const params = check(row.params, { processId, ...position, waitMs: 0 });
    const first = await sendNext(parts, params, response, gone.signal);
    if (first === undefined) throw new Refusal('worker_unavailable');
    await follow(parts, processId, first, response, gone.signal);
    response.end();
    parts.connections.bound(response);
  } catch (error) {
    if (!(error instanceof Refusal)) parts.log.error(faultOf(error), 'something unforeseen went wrong');
    const { code, message, details } = error instanceof Refusal ? error : new Refusal('internal');
    // What was begun can't be answered otherwise any more: the client asks again, and is told then.
    if (response.headersSent) response.end();
    else {
      const ms = Math.round(performance.now() - started);
      const whose = user === undefined ? {} : { user };
      const line = { action: row.audit, ...whose, ms, status: auditStatusOf(code), reason: code };
      if (!(error instanceof WorkersRefusal)) parts.audit.add(line);
      parts.connections.send(request, response, errorAnswer(code, { message, details }));
    }
  } finally {
    open -= 1;
  }
};
