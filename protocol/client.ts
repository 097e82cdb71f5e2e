import { type Exchange, exchange, type Fetch } from './client/exchange.ts';
import { interpretMutation, interpretRead } from './client/interpret.ts';
import type { MutationOutcome, NameOf, ReadOutcome, Reference, RequestOf, Resolution, Rows } from './client/outcome.ts';
import { askMs, type ResolveOptions, resolveReference } from './client/resolve.ts';
import type { Operation } from './operation.ts';
import { operations } from './operations/index.ts';
import { operationStatus } from './operations/operation-status.ts';
import { idempotencyKey as keySchema } from './values.ts';

export type { Fetch, FetchAnswer } from './client/exchange.ts';
export type * from './client/outcome.ts';
export type { ResolveOptions } from './client/resolve.ts';

/** What a client needs. */
export interface ClientOptions {
  /** Where the service is: `http://runner:8090`, with a path in front of the routes if there is one. */
  readonly address: string;
  /** The service token. */
  readonly token: string;
  /** The transport, normally `globalThis.fetch`; given, because this folder does no I/O of its own. */
  readonly fetch: Fetch;
  /**
   * How long to wait for an answer, ms: longer than the longest time limit of the service and what it adds to end a
   * run, or slow work becomes uncertain. (Node's own fetch waits 300 s for an answer unless it is told otherwise.)
   */
  readonly answerMs: number;
}

/** What may be said of a read. */
export interface ReadOptions {
  /** Stops waiting; it does not stop the operation. */
  readonly signal?: AbortSignal;
}

/** What must be said of a mutation. */
export interface MutationOptions extends ReadOptions {
  /**
   * Names this request for ever: 1 to 128 of letters, digits and `._:-`. Keep it before the call; sending the same
   * request again under the same key never has a second effect. Never use it for another request.
   */
  readonly idempotencyKey: string;
}

/** A client of the operations in a table. It sends every request once, and never again by itself. */
export class Client<Table extends Rows> {
  readonly #table: Table;
  readonly #options: ClientOptions;
  readonly #base: string;

  /** @throws TypeError when the address is not an HTTP URL */
  constructor(table: Table, options: ClientOptions) {
    const { protocol, origin, pathname } = new URL(options.address);
    if (protocol !== 'http:' && protocol !== 'https:') throw new TypeError('the address must be an HTTP URL');
    this.#table = table;
    this.#options = options;
    this.#base = origin + pathname.replace(/\/+$/, '');
  }

  /**
   * Asks for an operation. Never rejects for what the service or the network does: every way it can come out is an
   * outcome, and only `done` is a success.
   * @throws TypeError when the key of a mutation is not one
   */
  call<Name extends NameOf<Table, 'mutate'>>(
    name: Name,
    request: RequestOf<Table[Name]>,
    options: MutationOptions,
  ): Promise<MutationOutcome<Name, Table[Name]>>;
  call<Name extends NameOf<Table, 'read'>>(
    name: Name,
    request: RequestOf<Table[Name]>,
    options?: ReadOptions,
  ): Promise<ReadOutcome<Table[Name]>>;
  async call(
    name: string,
    request: Readonly<Record<string, unknown>>,
    options: ReadOptions & Partial<MutationOptions> = {},
  ): Promise<MutationOutcome<string, Operation> | ReadOutcome<Operation>> {
    const row = this.#row(name);
    const { idempotencyKey, signal } = options;
    if (row.effect === 'read') return interpretRead(row, await this.#post(row.route, request, signal));
    const key = keySchema.safeParse(idempotencyKey).data;
    if (key === undefined) throw new TypeError('a mutation needs a valid idempotency key');
    const { user } = request;
    const reference = { ...(typeof user === 'number' ? { user } : {}), idempotencyKey: key, sentAt: Date.now() };
    const came = await this.#post(row.route, request, signal, { 'Idempotency-Key': key });
    return interpretMutation(row, came, { operation: name, ...reference });
  }

  /**
   * Asks the service's ledger what became of a mutation: of an `uncertain` or `running` outcome, or of a reference
   * that the caller kept. Sends no mutation. Never rejects for what the service or the network does.
   */
  resolve<Name extends NameOf<Table, 'mutate'>>(
    reference: Reference<Name>,
    options: ResolveOptions,
  ): Promise<Resolution<Name, Table[Name]>> {
    // No more than a reference: of an outcome, its other fields would get into the answer.
    const { operation, idempotencyKey, user, operationId, sentAt, recorded } = reference;
    const known = { operation, idempotencyKey, user, operationId, sentAt, recorded };
    const ask = (key: object) => this.#post(operationStatus.route, key, options.signal, {}, askMs);
    const row: Table[Name] = this.#table[operation];
    return resolveReference(row, known, ask, options);
  }

  #row(name: string): Operation {
    const row = Object.hasOwn(this.#table, name) ? this.#table[name] : undefined;
    if (row === undefined) throw new TypeError('there is no such operation');
    return row;
  }

  #post(
    route: string,
    params: unknown,
    signal: AbortSignal | undefined,
    headers: Readonly<Record<string, string>> = {},
    answerMs: number = this.#options.answerMs,
  ): Promise<Exchange> {
    const { fetch, token } = this.#options;
    const all = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', ...headers };
    return exchange(fetch, { url: this.#base + route, headers: all, params, signal, answerMs });
  }
}

/** A client of this service. */
export const createClient = (options: ClientOptions): Client<typeof operations> => new Client(operations, options);
