import { frameBytesMax } from '../limits.ts';
import { operationId } from '../values.ts';
import { OneShotBody } from './one-shot-body.ts';
import type { Silence } from './outcome.ts';

/** What the client needs of an HTTP transport; `globalThis.fetch` is one. It must obey the signal. */
export type Fetch = (
  url: string,
  request: {
    readonly method: 'POST';
    readonly headers: Record<string, string>;
    readonly body: ReadableStream<Uint8Array<ArrayBuffer>>;
    readonly duplex: 'half';
    readonly redirect: 'manual';
    readonly signal: AbortSignal;
  },
) => Promise<FetchAnswer>;

/** The part of a `Response` that is looked at. */
export interface FetchAnswer {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  readonly body: ReadableStream<Uint8Array> | null;
}

/** One request. */
export interface ExchangeRequest {
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly params: unknown;
  readonly signal: AbortSignal | undefined;
  /** How long to wait for the whole answer, ms. */
  readonly answerMs: number;
}

/** An answer, whatever gave it. */
export interface HttpAnswer {
  readonly status: number;
  readonly operationId: string | undefined;
  readonly replayed: boolean;
  /** Undefined when it isn't a JSON object. */
  readonly body: Readonly<Record<string, unknown>> | undefined;
}

/** What came of one request. `sent`: the service may have all of it. */
export type Exchange =
  | { readonly came: 'answer'; readonly answer: HttpAnswer; readonly sent: boolean }
  | {
      readonly came: 'silence';
      readonly why: Silence;
      /** From the head of an answer that was cut. */
      readonly operationId: string | undefined;
      readonly sent: boolean;
    };

/** Longest answer that is read, bytes: a frame's text as JSON, where one byte can become six. */
export const answerBytesMax = 8 * frameBytesMax;

/** Undefined when there are more than `answerBytesMax`. Rejects when the connection breaks. */
const readBytes = async (body: ReadableStream<Uint8Array> | null): Promise<Uint8Array[] | undefined> => {
  const pieces: Uint8Array[] = [];
  const reader = body?.getReader();
  let length = 0;
  for (;;) {
    const piece = await reader?.read();
    if (piece?.value === undefined) return pieces;
    length += piece.value.length;
    if (length > answerBytesMax) {
      // Not waited for: it is the transport's own business.
      reader?.cancel().catch(() => undefined);
      return undefined;
    }
    pieces.push(piece.value);
  }
};

/** A JSON object in valid UTF-8; undefined for anything else. */
export const objectOf = (pieces: readonly Uint8Array[]): Readonly<Record<string, unknown>> | undefined => {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(pieces)));
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? (value as Readonly<Record<string, unknown>>) : undefined;
  } catch {
    return undefined;
  }
};

/** Makes one request, once. Never rejects: what is not an answer is a silence. */
export const exchange = async (fetch: Fetch, request: ExchangeRequest): Promise<Exchange> => {
  const { url, headers, params, answerMs } = request;
  const body = new OneShotBody(JSON.stringify(params));
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), answerMs);
  const signal = request.signal === undefined ? limit.signal : AbortSignal.any([request.signal, limit.signal]);
  let head: FetchAnswer | undefined;
  const idInHead = () => operationId.safeParse(head?.headers.get('operation-id')).data;
  try {
    head = await fetch(url, { method: 'POST', headers, body: body.stream, duplex: 'half', redirect: 'manual', signal });
    const pieces = await readBytes(head.body);
    const answer = {
      status: head.status,
      operationId: idInHead(),
      replayed: head.headers.get('idempotency-replayed') === 'true',
      body: pieces && objectOf(pieces),
    };
    return { came: 'answer', answer, sent: body.withdraw() };
  } catch {
    const broken = head === undefined ? 'no_answer' : 'answer_cut';
    const why = request.signal?.aborted ? 'aborted' : limit.signal.aborted ? 'timed_out' : broken;
    return { came: 'silence', why, operationId: idInHead(), sent: body.withdraw() };
  } finally {
    clearTimeout(timer);
  }
};
