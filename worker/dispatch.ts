/**
 * Purpose: the only caller of handlers. Every request of the gateway goes through the same steps, in this order:
 * look-up, schema, shard, state, room, key, handler, schema of the result, audit. A mutation's handler begins its
 * record right before the effect; it is finished here, before the answer is told.
 * Rights: root with the three capabilities, which handlers use through spaces and runs.
 * Called by: link.ts, for each request.
 * Fails: a request that the gateway's own check would have refused is a sign of a taken gateway: it throws
 * ProtocolViolation, and the link ends. A refusal is an outcome. Anything unforeseen is `internal`, logged.
 */
import type { Logger } from 'pino';
import { type AuditQueue, type AuditRecord, auditStatusOf, type StopReason } from '../protocol/audit.ts';
import { check } from '../protocol/check.ts';
import type { MessageOf, Outcome } from '../protocol/envelope.ts';
import { Refusal } from '../protocol/errors.ts';
import { faultOf } from '../protocol/fault.ts';
import { ProtocolViolation } from '../protocol/msgpack-check.ts';
import { errorsOf, type Operation } from '../protocol/operation.ts';
import { type OperationName, operations, type Params } from '../protocol/operations/index.ts';
import { userOf } from '../protocol/user-of.ts';
import type { AuditFacts, HandlerContext, Handlers } from './handlers.ts';
import type { Mutation, MutationEnd, Mutations, Replay } from './ledger/mutations.ts';
import { replay } from './ledger/replay.ts';
import type { Outputs } from './outputs.ts';

/** What dispatch asks the rest of the worker. */
export interface DispatchDependencies {
  readonly handlers: Handlers;
  readonly mutations: Mutations;
  readonly audit: AuditQueue;
  readonly log: Logger;
  readonly userRange: { readonly first: number; readonly last: number };
  /** True while no new mutation can be taken in. */
  readonly overloaded: (row: Operation) => boolean;
}

/** The request as link.ts hands it over. */
export interface Call {
  readonly request: MessageOf<'request'>;
  readonly signal: AbortSignal;
  readonly outputs: Outputs;
  /** Resolves when the link has room for a large answer. */
  readonly room: () => Promise<void>;
}

/** A request on its way: what all steps know of it. */
interface Step {
  readonly name: OperationName;
  readonly row: Operation;
  readonly params: Params<OperationName>;
  readonly operationId: string;
  readonly idempotencyKey: string | undefined;
  readonly signal: AbortSignal;
  readonly outputs: Outputs;
  readonly room: () => Promise<void>;
  /** On the monotonic clock, ms. */
  readonly startedAt: number;
}

/** The pipeline that every operation goes through. */
export class Dispatch {
  readonly #dependencies: DispatchDependencies;
  /** Mutations under way, by operation id. */
  readonly #underWay = new Set<string>();
  #draining = false;
  #idle: (() => void)[] = [];

  constructor(dependencies: DispatchDependencies) {
    this.#dependencies = dependencies;
  }

  /** Refuses everything new from here on. */
  drain(): void {
    this.#draining = true;
  }

  /** Resolves when no mutation is under way: all outcomes are on record. The caller bounds the wait. */
  async idle(): Promise<void> {
    if (this.#underWay.size === 0) return;
    await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /**
   * Carries out one request.
   * @throws ProtocolViolation when the gateway can't have checked it
   */
  async call({ request, signal, outputs, room }: Call): Promise<Outcome> {
    const { operation: name, idempotencyKey } = request;
    const row = operations[name];
    const operationId = this.#take(request, row);
    try {
      const params = this.#checked(request, row);
      const startedAt = performance.now();
      const step: Step = { name, row, params, operationId, idempotencyKey, signal, outputs, room, startedAt };
      return await (operationId === '' ? this.#carryOut(step, undefined) : this.#mutate(step));
    } finally {
      this.#underWay.delete(operationId);
      if (this.#underWay.size === 0) for (const resolve of this.#idle.splice(0)) resolve();
    }
  }

  /** A mutation names itself, once; anything else names nothing. */
  #take({ operationId = '', idempotencyKey }: MessageOf<'request'>, row: Operation): string {
    const mutates = row.effect === 'mutate';
    if ((operationId !== '') !== mutates || (idempotencyKey !== undefined && !mutates))
      throw new ProtocolViolation('an operation id or key is missing or misplaced');
    if (this.#underWay.has(operationId)) throw new ProtocolViolation('an operation id is used again');
    if (mutates) this.#underWay.add(operationId);
    return operationId;
  }

  #checked(request: MessageOf<'request'>, row: (typeof operations)[OperationName]): Params<OperationName> {
    try {
      return check(row.params, request.params);
    } catch (error) {
      throw error instanceof Refusal ? new ProtocolViolation('params that the gateway cannot have checked') : error;
    }
  }

  /** A mutation goes through the ledger; one that was done before under its key is not done again. */
  async #mutate(step: Step): Promise<Outcome> {
    const { name, operationId, idempotencyKey, params } = step;
    const user = userOf(params);
    if (user === undefined) throw new Error('a mutation without a user');
    try {
      this.#admit(step);
      return await this.#dependencies.mutations.enter(
        { operationId, operation: name, user, params, idempotencyKey, cameAt: Date.now() },
        (mutation) => this.#carryOut(step, mutation),
        (earlier) => this.#replay(step, earlier),
      );
    } catch (error) {
      return this.#refused(step, {}, error);
    }
  }

  /** Does the work and audits it. Throws nothing but what a link must end for. */
  async #carryOut(step: Step, mutation: Mutation | undefined): Promise<Outcome> {
    const { name, params, operationId, signal, outputs, room } = step;
    let facts: AuditFacts = {};
    const context: HandlerContext = {
      operationId,
      signal,
      outputs,
      room,
      begin: async () => {
        // Nobody waits any more, and a look-up may have said already that it never began.
        if (signal.aborted) throw new Refusal('uncertain');
        await mutation?.begin();
      },
      note: (more) => {
        facts = { ...facts, ...more };
      },
    };
    let outcome: MutationEnd['outcome'];
    try {
      if (mutation === undefined) this.#admit(step);
      const result = this.#checkedResult(name, await this.#handle(name, params, context));
      if (mutation?.begun === false) throw new Error('an effect that is not on record');
      await outputs.sent();
      outcome = { ok: true, result, streams: outputs.ends() };
      this.#audit(step, facts, facts.status ?? 'ok');
    } catch (error) {
      outcome = this.#refused(step, facts, error);
    }
    await mutation?.finish({
      outcome,
      timedOut: facts.status === 'timeout',
      stopped: signal.aborted ? (signal.reason as StopReason) : undefined,
      exit: facts.exit,
      streams: outputs.kept(),
    });
    return outcome;
  }

  /** The compiler can't see that a row's handler takes that row's params. */
  #handle(name: OperationName, params: Params<OperationName>, context: HandlerContext): Promise<unknown> {
    const handlers = this.#dependencies.handlers as Readonly<
      Record<OperationName, (params: unknown, context: HandlerContext) => Promise<unknown>>
    >;
    return handlers[name](params, context);
  }

  /** A result of a wrong shape is a bug, whatever code its check carries. */
  #checkedResult(name: OperationName, result: unknown): unknown {
    try {
      return check(operations[name].result, result);
    } catch {
      throw new Error('a handler gave a result of a wrong shape');
    }
  }

  /** Nothing is done; the line names the operation that was. */
  #replay(step: Step, earlier: Replay): Promise<Outcome> {
    const { operationId, record } = earlier;
    const { outcome, exit } = record;
    const status = outcome === 'ok' || outcome === 'timeout' ? outcome : 'error';
    this.#audit({ ...step, operationId }, exit === null ? {} : { exit }, status, 'replayed');
    return replay(earlier, step.outputs);
  }

  /** @throws Refusal what is refused before a handler looks at the request */
  #admit({ params, row }: Step): void {
    const { userRange, overloaded } = this.#dependencies;
    const user = userOf(params);
    if (user !== undefined && (user < userRange.first || user > userRange.last)) throw new Refusal('wrong_shard');
    if (this.#draining) throw new Refusal('draining');
    if (row.effect === 'mutate' && overloaded(row)) throw new Refusal('overloaded');
  }

  #refused(step: Step, facts: AuditFacts, error: unknown): Extract<Outcome, { ok: false }> {
    // A reused id or bad params: the link must end.
    if (error instanceof ProtocolViolation) throw error;
    const { signal, row } = step;
    const { code, details } = this.#understood(error, row);
    // Cut short since nobody waits: the reason says why. Any other refusal would have been the same without it.
    if (signal.aborted && code === 'uncertain') this.#audit(step, facts, 'error', signal.reason as StopReason);
    else this.#audit(step, facts, auditStatusOf(code), code);
    return { ok: false, error: code, ...(details === undefined ? {} : { details }) };
  }

  #audit(
    { row, params, operationId, startedAt }: Step,
    facts: AuditFacts,
    status: AuditRecord['status'],
    reason?: AuditRecord['reason'],
  ): void {
    if (row.poll === true && status === 'ok') return;
    const user = userOf(params);
    this.#dependencies.audit.add({
      action: row.audit,
      ...(user === undefined ? {} : { user }),
      ...facts,
      ms: Math.round(performance.now() - startedAt),
      status,
      ...(reason === undefined ? {} : { reason }),
      ...(operationId === '' ? {} : { operationId }),
    });
  }

  #understood(error: unknown, row: Operation): Refusal {
    if (error instanceof Refusal && errorsOf(row).includes(error.code)) return error;
    this.#dependencies.log.error(faultOf(error), 'an operation failed in an unforeseen way');
    return new Refusal('internal');
  }
}
