/**
 * Purpose: what a handler is: one for each row of the operation table, and what it gets besides its params.
 * Rights: none. Types only.
 * Called by: dispatch.ts and everything in operations/.
 */
import type { AuditRecord } from '../protocol/audit.ts';
import type { OperationName, Params, Result } from '../protocol/operations/index.ts';
import type { Outputs } from './outputs.ts';

/** What an audit line says beyond what every line says. */
export type AuditFacts = Pick<AuditRecord, 'tool' | 'args' | 'exit'> & { readonly status?: AuditRecord['status'] };

/** What a handler gets besides its params. */
export interface HandlerContext {
  readonly operationId: string;
  /** Aborted with a StopReason when nobody waits for the answer any more and the work must end. */
  readonly signal: AbortSignal;
  readonly outputs: Outputs;
  /** Resolves when the link has room for a large answer, which is put together and returned at once then. */
  room(): Promise<void>;
  /**
   * Puts the mutation on record. Every handler of one calls it once, right before anything that can't be undone,
   * after all refusals that it can see coming.
   * @throws Refusal `ledger_unavailable`
   */
  begin(): Promise<void>;
  /** Adds facts to the audit line, whatever the outcome will be. */
  note(facts: AuditFacts): void;
}

/** One handler for each row of the table; a row without one does not compile. */
export type Handlers = {
  readonly [Name in OperationName]: (params: Params<Name>, context: HandlerContext) => Promise<Result<Name>>;
};
