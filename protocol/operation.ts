import type { z } from 'zod';
import type { AuditAction } from './audit.ts';
import type { ErrorCode } from './errors.ts';

/** The time limits an operation's deadline is made of, ms. */
export interface TimeLimits {
  readonly execMs: number;
  readonly fileMs: number;
  readonly resetMs: number;
}

/** The sizes that an operator can set, bytes; 0 = no other limit than the request body's. */
export interface SizeLimits {
  readonly writeBytes: number;
}

/**
 * One row of the operation table: all that both sides, the routes and the documentation need to know of an
 * operation. Adding one is a row here, a handler of the same name in the worker, and a test.
 */
export interface Operation {
  /** `POST` route. The body is `params`; null for an optional field means absent. `GET` for one of events. */
  readonly route: `/v1/${string}`;
  /** `mutate`: has an operation id, is never sent twice, can be `uncertain`. `read`: may be repeated once. */
  readonly effect: 'read' | 'mutate';
  /** Checked by both ends; only the worker's run counts, and a failure there means a taken gateway. */
  readonly params: z.ZodObject;
  /** The worker's reply, without `streams`. */
  readonly result: z.ZodType;
  /** The answer's body is `result` and nothing more: no operation id, and no word of a replay, which headers tell. */
  readonly fixedReply?: true;
  /** Starts a run of the user: refused while there is no room for another one. */
  readonly startsRun?: true;
  /** Its route is answered with Server-Sent Events, made of many of its results. */
  readonly events?: true;
  /** Asked again and again, for each key that is typed: audited only when it is refused. */
  readonly poll?: true;
  /** Fields of the answer whose bytes come as events, ahead of the reply; they become text at the gateway. */
  readonly streams: readonly string[];
  /** What runs as root for it: for reviewers, shown in the docs. */
  readonly asRoot: string;
  /** What runs as the user for it. */
  readonly asUser: string;
  readonly audit: AuditAction;
  /** Fields whose values may appear nowhere: no log, audit line or ledger record. */
  readonly secrets: readonly string[];
  /** The codes that the worker may answer it with, beyond those that every operation can have. */
  readonly errors: readonly ErrorCode[];
  /** Fields of text whose size the settings limit, and to how much; beyond what `params` says. See `checkSizes`. */
  readonly sizes?: (limits: SizeLimits) => Readonly<Record<string, number>>;
  /** Its own time limit, ms; the link waits for this, the kill grace and some slack before it says `uncertain`. */
  readonly timeLimitMs: (limits: TimeLimits) => number;
}

/** What any operation can be answered with by the worker, before its effect began. */
export const commonErrors = [
  'internal',
  'draining',
  'overloaded',
  'wrong_shard',
] as const satisfies readonly ErrorCode[];

/** What any mutation can be answered with besides, before its effect began. */
export const commonMutationErrors = [
  'operation_running',
  'idempotency_conflict',
  'operation_interrupted',
  'ledger_unavailable',
] as const satisfies readonly ErrorCode[];

/** Every code that the worker may answer an operation with. */
export const errorsOf = (row: Operation): readonly ErrorCode[] => [
  ...commonErrors,
  ...(row.effect === 'mutate' ? commonMutationErrors : []),
  ...row.errors,
];
