/**
 * Purpose: the only caller of handlers. Every request of the gateway goes through the same steps, in this order:
 * look-up, schema, state, shard, room, handler, schema of the result, audit. An operation's record is begun
 * before its handler and finished after it.
 * Rights: root with the three capabilities, which handlers use through spaces and runs.
 * Called by: link.ts, for each request.
 * Fails: a request that the gateway's own check would have refused is a sign of a taken gateway: it throws
 * ProtocolViolation, and the link ends. A refusal is an outcome. Anything unforeseen is `internal`, logged.
 */
import type { Logger } from 'pino';
import { type AuditQueue, type AuditRecord, auditStatusOf, type StopReason } from '../protocol/audit.ts';
import { check } from '../protocol/check.ts';
import type { MessageOf, Outcome } from '../protocol/envelope.ts';
import { type ErrorCode, Refusal } from '../protocol/errors.ts';
import { faultOf } from '../protocol/fault.ts';
import { ProtocolViolation } from '../protocol/msgpack-check.ts';
import { commonErrors, type Operation } from '../protocol/operation.ts';
import { type OperationName, operations, type Params, type Result } from '../protocol/operations/index.ts';
import type { Outputs } from './outputs.ts';

/** What an audit line says beyond what every line says. */
export type AuditFacts = Pick<AuditRecord, 'tool' | 'args' | 'exit'> & { readonly status?: AuditRecord['status'] };

/** What a handler gets besides its params. */
export interface HandlerContext {
  readonly operationId: string;
  /** Aborted with a StopReason when nobody waits for the answer any more and the work must end. */
  readonly signal: AbortSignal;
  readonly outputs: Outputs;
  /** Adds facts to the audit line, whatever the outcome will be. */
  note(facts: AuditFacts): void;
}

/** One handler for each row of the table; a row without one does not compile. */
export type Handlers = {
  readonly [Name in OperationName]: (params: Params<Name>, context: HandlerContext) => Promise<Result<Name>>;
};

/** What dispatch asks the rest of the worker. */
export interface DispatchDependencies {
  readonly handlers: Handlers;
  readonly audit: AuditQueue;
  readonly log: Logger;
  readonly userRange: { readonly first: number; readonly last: number };
  /** True while no new mutation can be taken in. */
  readonly overloaded: () => boolean;
}

/** The request as link.ts hands it over. */
export interface Call {
  readonly request: MessageOf<'request'>;
  readonly signal: AbortSignal;
  readonly outputs: Outputs;
}

const mayAnswer = (row: Operation, code: ErrorCode): boolean =>
  row.errors.includes(code) || commonErrors.some((common) => common === code);

/** The pipeline that every operation goes through. */
export class Dispatch {
  readonly #dependencies: DispatchDependencies;
  /** Mutations under way, by operation id. */
  readonly #begun = new Set<string>();
  #draining = false;

  constructor(dependencies: DispatchDependencies) {
    this.#dependencies = dependencies;
  }

  /** Refuses everything new from here on. */
  drain(): void {
    this.#draining = true;
  }

  /**
   * Carries out one request.
   * @throws ProtocolViolation when the gateway can't have checked it
   */
  async call({ request, signal, outputs }: Call): Promise<Outcome> {
    const startedAt = performance.now();
    const row = operations[request.operation];
    const operationId = this.#begin(request, row);
    try {
      const params = this.#checked(request, row);
      return await this.#carryOut(request.operation, params, { operationId, signal, outputs, startedAt });
    } finally {
      this.#begun.delete(operationId);
    }
  }

  /** A mutation names itself, once; anything else names nothing. */
  #begin(request: MessageOf<'request'>, row: Operation): string {
    const operationId = request.operationId ?? '';
    if ((operationId !== '') !== (row.effect === 'mutate'))
      throw new ProtocolViolation('an operation id is missing or misplaced');
    if (this.#begun.has(operationId)) throw new ProtocolViolation('an operation id is used again');
    if (operationId !== '') this.#begun.add(operationId);
    return operationId;
  }

  #checked(request: MessageOf<'request'>, row: (typeof operations)[OperationName]): Params<OperationName> {
    try {
      return check(row.params, request.params);
    } catch (error) {
      throw error instanceof Refusal ? new ProtocolViolation('params that the gateway cannot have checked') : error;
    }
  }

  async #carryOut<Name extends OperationName>(
    name: Name,
    params: Params<Name>,
    { operationId, signal, outputs, startedAt }: Omit<HandlerContext, 'note'> & { startedAt: number },
  ): Promise<Outcome> {
    const { handlers, audit } = this.#dependencies;
    const row: Operation = operations[name];
    let facts: AuditFacts = {};
    const note = (more: AuditFacts): void => {
      facts = { ...facts, ...more };
    };
    const finish = (status: AuditRecord['status'], reason?: ErrorCode | StopReason): void =>
      audit.add({
        action: row.audit,
        user: params.user,
        ...facts,
        ms: Math.round(performance.now() - startedAt),
        status,
        ...(reason === undefined ? {} : { reason }),
        ...(operationId === '' ? {} : { operationId }),
      });
    try {
      this.#admit(row, params.user);
      const result = await handlers[name](params, { operationId, signal, outputs, note });
      await outputs.sent();
      const outcome: Outcome = { ok: true, result: check(operations[name].result, result), streams: outputs.ends() };
      finish(facts.status ?? 'ok');
      return outcome;
    } catch (error) {
      const refusal = this.#understood(error, row);
      // Cut short since nobody waits: the reason says why. Any other refusal would have been the same without it.
      if (signal.aborted && refusal.code === 'uncertain') finish('error', signal.reason as StopReason);
      else finish(auditStatusOf(refusal.code), refusal.code);
      return { ok: false, error: refusal.code, ...(refusal.details === undefined ? {} : { details: refusal.details }) };
    }
  }

  /** @throws Refusal what is refused before a handler looks at the request */
  #admit(row: Operation, user: number): void {
    const { userRange, overloaded } = this.#dependencies;
    if (user < userRange.first || user > userRange.last) throw new Refusal('wrong_shard');
    if (this.#draining) throw new Refusal('draining');
    if (row.effect === 'mutate' && overloaded()) throw new Refusal('overloaded');
  }

  #understood(error: unknown, row: Operation): Refusal {
    if (error instanceof Refusal && error.code !== 'bad_request' && mayAnswer(row, error.code)) return error;
    this.#dependencies.log.error(faultOf(error), 'an operation failed in an unforeseen way');
    return new Refusal('internal');
  }
}
