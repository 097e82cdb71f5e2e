import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import type { AuditQueue, LinkLoss } from '../protocol/audit.ts';
import type { MessageOf, Outcome } from '../protocol/envelope.ts';
import { faultOf } from '../protocol/fault.ts';
import type { OperationName } from '../protocol/operations/index.ts';
import { Call, type CallOutcome } from './call.ts';
import { WorkerSocket } from './worker-socket.ts';

const retryDelayMinMs = 50;
const retryDelayMaxMs = 1_000;

/** What a link needs. */
export interface WorkerLinkParts {
  readonly socketPath: string;
  readonly outputBytesMax: number;
  readonly audit: AuditQueue;
  readonly log: Logger;
  /** Monotonic, ms. */
  readonly clock?: () => number;
}

/** One request for the worker. */
export interface CallRequest {
  readonly operation: OperationName;
  readonly params: unknown;
  /** Of mutations only. */
  readonly operationId: string | undefined;
  /** Of mutations only. */
  readonly idempotencyKey: string | undefined;
  /** The operation's streams. */
  readonly streams: readonly string[];
  /** After this the outcome is that nothing came, ms. */
  readonly deadlineMs: number;
  /** Aborted when nobody waits any more: as if the deadline had passed. */
  readonly signal?: AbortSignal;
}

interface CallUnderWay {
  readonly call: Call;
  readonly deadline: NodeJS.Timeout;
}

/**
 * The gateway's link to the worker: made, and made again when lost. Whatever is under way when it is lost
 * comes to nothing; nothing is ever sent twice by it.
 */
export class WorkerLink {
  readonly #parts: WorkerLinkParts;
  readonly #clock: () => number;
  readonly #instance = randomUUID();
  readonly #calls = new Map<number, CallUnderWay>();
  #socket: WorkerSocket | undefined;
  #upSince: number | undefined;
  #retryDelayMs = 0;
  #retry: NodeJS.Timeout | undefined;
  #failureTold = false;
  #awaitingReady: (() => void)[] = [];

  /** Begins to connect. */
  constructor(parts: WorkerLinkParts) {
    this.#parts = parts;
    this.#clock = parts.clock ?? (() => performance.now());
    this.#connect();
  }

  /** True while requests can be sent. */
  get ready(): boolean {
    return this.#socket?.ready === true;
  }

  /** True while one more request would be more than the worker takes. */
  get full(): boolean {
    return this.#socket === undefined || this.#socket.connection.full || this.#socket.congested;
  }

  /** Resolves once the link is up; never, if it never is. */
  async whenReady(): Promise<void> {
    if (this.ready) return;
    await new Promise<void>((resolve) => this.#awaitingReady.push(resolve));
  }

  /** Sends a request; the caller has looked at `ready` and `full`. The outcome always comes, by the deadline. */
  call(request: CallRequest): Promise<CallOutcome> {
    const { connection } = this.#socket ?? {};
    if (connection === undefined) throw new Error('no request can be sent now');
    const { operation, params, operationId, idempotencyKey } = request;
    const call = new Call(request.streams, this.#parts.outputBytesMax);
    const id = connection.request(operation, params, operationId, idempotencyKey);
    const giveUp = (): void => {
      // It stays under way until its reply: the worker may send the rest of its output first.
      call.giveUp();
      if (this.#calls.has(id) && connection === this.#socket?.connection) connection.cancel(id);
    };
    const deadline = setTimeout(giveUp, request.deadlineMs);
    request.signal?.addEventListener('abort', giveUp, { once: true });
    void call.outcome.then(() => request.signal?.removeEventListener('abort', giveUp));
    this.#calls.set(id, { call, deadline });
    return call.outcome;
  }

  /** Ends the link for good. */
  stop(): void {
    clearTimeout(this.#retry);
    this.#socket?.close();
    this.#socket = undefined;
    this.#upSince = undefined;
    this.#giveUpCalls();
  }

  #connect(): void {
    const socket: WorkerSocket = new WorkerSocket(
      this.#parts.socketPath,
      this.#instance,
      {
        ready: () => this.#up(),
        event: (event) => this.#take(socket, event),
        reply: (id, outcome) => this.#finish(id, outcome),
      },
      (reason, cause) => this.#down(reason, cause),
      this.#clock,
    );
    this.#socket = socket;
  }

  #up(): void {
    this.#upSince = this.#clock();
    this.#failureTold = false;
    this.#parts.log.info('the link to the worker is up');
    for (const resolve of this.#awaitingReady.splice(0)) resolve();
  }

  #down(reason: LinkLoss, cause: Error | undefined): void {
    const { audit, log } = this.#parts;
    const upMs = this.#upSince === undefined ? undefined : Math.round(this.#clock() - this.#upSince);
    this.#upSince = undefined;
    this.#socket = undefined;
    if (upMs !== undefined) audit.add({ action: 'link.lost', ms: upMs, status: 'error', reason });
    if (upMs !== undefined || !this.#failureTold)
      log.warn({ reason, cause: cause && faultOf(cause) }, 'there is no link to the worker');
    this.#failureTold = true;
    this.#giveUpCalls();
    // At once after a link that lasted; a worker that ends each one at once is not to be called in a tight loop.
    const delay = upMs !== undefined && upMs >= retryDelayMaxMs ? 0 : this.#retryDelayMs;
    this.#retryDelayMs = Math.min(retryDelayMaxMs, Math.max(retryDelayMinMs, 2 * delay));
    this.#retry = setTimeout(() => this.#connect(), delay);
  }

  #take(socket: WorkerSocket, { id, stream, data }: MessageOf<'event'>): void {
    const credit = this.#underWay(id).call.take(stream, data);
    if (credit > 0) socket.connection.grant(id, credit);
  }

  #finish(id: number, outcome: Outcome): void {
    const { call, deadline } = this.#underWay(id);
    call.finish(outcome);
    clearTimeout(deadline);
    this.#calls.delete(id);
  }

  /** The state machine lets only events and replies of requests under way through. */
  #underWay(id: number): CallUnderWay {
    const entry = this.#calls.get(id);
    if (entry === undefined) throw new Error('a request that nobody made');
    return entry;
  }

  #giveUpCalls(): void {
    for (const { call, deadline } of this.#calls.values()) {
      clearTimeout(deadline);
      call.giveUp();
    }
    this.#calls.clear();
  }
}
