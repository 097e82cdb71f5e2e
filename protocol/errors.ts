import { failedRows } from './error-rows/failed.ts';
import { refusedRows } from './error-rows/refused.ts';
import { repositoryRows } from './error-rows/repository.ts';
import type { ErrorRow } from './error-rows/row.ts';

export type { Blame, Effect, RetryAdvice } from './error-rows/row.ts';

/**
 * The closed list of refusals: every error that leaves the service has one of these codes.
 * A tool that fails is a result and not in here; a bug is `internal`.
 * Source: specification, HTTP API, "Rules for all routes".
 */
export const errors = { ...refusedRows, ...repositoryRows, ...failedRows } as const;

/** One code of the closed list. */
export type ErrorCode = keyof typeof errors;

/** The codes, for schemas. */
export const errorCodes = Object.keys(errors) as [ErrorCode, ...ErrorCode[]];

/** The row of a code. */
export const errorRow = (code: ErrorCode): ErrorRow => errors[code];

/** An expected refusal on its way to the caller. Everything else that is thrown is a bug and answered `internal`. */
export class Refusal extends Error {
  readonly code: ErrorCode;
  readonly details: Readonly<Record<string, unknown>> | undefined;

  /** @param message a sentence of its own where the code's fixed one is too general; never a value of the request */
  constructor(code: ErrorCode, details?: Readonly<Record<string, unknown>>, message?: string) {
    super(message ?? errors[code].text);
    this.name = 'Refusal';
    this.code = code;
    this.details = details;
  }
}
