import { z } from 'zod';
import { errorCodes } from '../errors.ts';
import type { Operation } from '../operation.ts';
import { answeredWith, idempotencyKey, operationId, userNumber } from '../values.ts';

/** Where an operation stands. `interrupted`: begun in an earlier life of the worker, and never finished. */
export const operationStates = ['running', 'finished', 'interrupted'] as const;
export type OperationState = (typeof operationStates)[number];

/**
 * How a finished operation came out. `timeout`: with a result, that of a tool whose time limit passed.
 * `killed_…`: its processes were ended, since the link was lost, its caller's deadline passed, or the worker stopped.
 */
export const recordedOutcomes = [
  'ok',
  'timeout',
  'killed_link_lost',
  'killed_cancelled',
  'killed_draining',
  ...errorCodes,
] as const;
export type RecordedOutcome = (typeof recordedOutcomes)[number];

/**
 * Tells what became of an operation.
 * Source: specification, Protocol, "Uncertainty".
 */
export const operationStatus = {
  route: '/v1/operation/status',
  effect: 'read',
  params: z
    .strictObject({
      operationId: operationId.optional(),
      user: userNumber.optional(),
      idempotencyKey: idempotencyKey.optional(),
    })
    .refine(
      (given) =>
        given.operationId === undefined
          ? given.user !== undefined && given.idempotencyKey !== undefined
          : given.user === undefined && given.idempotencyKey === undefined,
      answeredWith('bad_request', 'must hold either "operationId", or "user" and "idempotencyKey"'),
    ),
  result: z.strictObject({
    operationId,
    /** The area of the action: `exec`, `repo`, `files` … */
    kind: z.string().max(32),
    action: z.string().max(64),
    state: z.enum(operationStates),
    /** null while it runs, and for one that was interrupted. */
    outcome: z.enum(recordedOutcomes).nullable(),
    /** The status of the answer that it had or would have had; null while it runs. */
    httpStatus: z.int().nullable(),
    error: z.enum(errorCodes).nullable(),
    startedAt: z.iso.datetime(),
    finishedAt: z.iso.datetime().nullable(),
    /** The answer's own fields, outputs included, while they are kept. */
    result: z.record(z.string(), z.unknown()).optional(),
    /** The tool's exit code, also when the answer is not kept any more. */
    exitCode: z.int().min(-1).max(255).optional(),
  }),
  streams: [],
  asRoot: 'reads one record of the ledger',
  asUser: 'nothing',
  audit: 'operation.status',
  secrets: ['idempotencyKey'],
  errors: ['operation_not_found', 'ledger_unavailable'],
  timeLimitMs: () => 0,
} as const satisfies Operation;
