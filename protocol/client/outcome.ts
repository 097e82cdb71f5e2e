import type { z } from 'zod';
import type { Effect, ErrorCode, errors } from '../errors.ts';
import type { Operation } from '../operation.ts';

/** A table of operations, as `operations` is one. */
export type Rows = Readonly<Record<string, Operation>>;

/** The names of the rows with this effect; what is answered with a stream of events is not asked for here. */
export type NameOf<Table extends Rows, Kind extends Operation['effect']> = {
  [Name in keyof Table & string]: Table[Name] extends { readonly events: true }
    ? never
    : Table[Name]['effect'] extends Kind
      ? Name
      : never;
}[keyof Table & string];

/** The request of an operation as a caller writes it. */
export type RequestOf<Row extends Operation> = z.input<Row['params']>;

/** The result of an operation as a caller gets it: the worker's reply and the streams as text. */
export type ResultOf<Row extends Operation> = z.output<Row['result']> & {
  readonly [Stream in Row['streams'][number]]: string;
};

/** The codes that say this of a mutation. */
export type CodeWith<Wanted extends Effect> = {
  [Code in ErrorCode]: (typeof errors)[Code]['effect'] extends Wanted ? Code : never;
}[ErrorCode];

type DetailsOf<Code extends ErrorCode> = (typeof errors)[Code] extends {
  readonly details: infer Schema extends z.ZodType;
}
  ? z.output<Schema>
  : undefined;

/** A refusal in the service's words, with the details that its code has. */
export type RefusalWith<Code extends ErrorCode> = {
  readonly [Each in Code]: {
    readonly code: Each;
    readonly retry: (typeof errors)[Each]['retry'];
    readonly message: string;
    /** Undefined also where the service gave none, or some that this version doesn't know. */
    readonly details: DetailsOf<Each> | undefined;
  };
}[Code];

/** What is told of every mutation that the service answered. */
interface Told {
  /** Undefined when it was refused before it was given one. */
  readonly operationId: string | undefined;
  /** True when this is the recorded answer of an earlier request with the same key. */
  readonly replayed: boolean;
}

/** It took effect, and this is all of its result. */
export interface DoneWhole<Row extends Operation> {
  readonly kind: 'done';
  readonly operationId: string;
  readonly replayed: boolean;
  readonly outputExpired: false;
  readonly result: ResultOf<Row>;
}

/** It took effect, some time ago: the service has forgotten its outputs, and only what it still knows is in `result`. */
export interface DoneExpired<Row extends Operation> {
  readonly kind: 'done';
  readonly operationId: string;
  readonly replayed: true;
  readonly outputExpired: true;
  readonly result: Partial<ResultOf<Row>>;
}

/** It took effect. */
export type Done<Row extends Operation> = DoneWhole<Row> | DoneExpired<Row>;

/** The request did not leave whole: the service can't have begun anything. */
export interface NotSent {
  readonly code: 'not_sent';
  readonly retry: 'later';
  readonly message: string;
  readonly details: undefined;
}

/** This request certainly had no effect. Says nothing of an earlier one with the same key. */
export type Failed = { readonly kind: 'failed' } & Told & (RefusalWith<CodeWith<'none'>> | NotSent);

/**
 * It had, or may have had, a part of what was asked for: a run whose processes could not all be ended, a delete or reset
 * that stopped half-way. Under its key it stays so.
 */
export type Incomplete = { readonly kind: 'incomplete' } & Told & RefusalWith<CodeWith<'incomplete'>>;

/** It began and was cut short. What it did until then nobody knows; asking again tells nothing more. */
export interface Interrupted {
  readonly kind: 'interrupted';
  readonly operationId: string | undefined;
  /** The ledger's word for how it ended, if it has one, such as `killed_link_lost`. */
  readonly outcome: string | undefined;
}

/**
 * All that is needed to ask what became of a mutation: plain data, fit to be stored as JSON before the request is
 * sent and used after a crash of the caller.
 */
export interface Reference<Name extends string = string> {
  readonly operation: Name;
  readonly idempotencyKey: string;
  /** The user that the key belongs to; without it the operation can be found by its id alone. */
  readonly user?: number | undefined;
  /** Known once the service has answered. */
  readonly operationId?: string | undefined;
  /** When the request was made, Unix time, ms. */
  readonly sentAt: number;
  /** True once the ledger is known to have a record of it. */
  readonly recorded?: boolean | undefined;
}

/** An operation with this key is under way. */
export type Running<Name extends string> = { readonly kind: 'running' } & Reference<Name>;

/** Why there is no answer that could be believed. */
export type Silence =
  /** The caller's signal. */
  | 'aborted'
  /** The client's own limit. */
  | 'timed_out'
  /** The connection broke before the answer began. */
  | 'no_answer'
  /** The connection broke in the middle of the answer. */
  | 'answer_cut'
  /** Something answered that is not this service, or of another version. */
  | 'wrong_answer';

/** It may or may not have taken effect, now or later. `resolve` asks what became of it. */
export type Uncertain<Name extends string> = { readonly kind: 'uncertain' } & Reference<Name> & {
    /** `told`: the service says so itself. */
    readonly why: Silence | 'told';
    readonly code: CodeWith<'unknown'> | undefined;
  };

/** How a mutation came out. */
export type MutationOutcome<Name extends string, Row extends Operation> =
  | Done<Row>
  | Failed
  | Incomplete
  | Interrupted
  | Running<Name>
  | Uncertain<Name>;

/** How a read came out; whatever it is, it may be repeated. */
export type ReadOutcome<Row extends Operation> =
  | { readonly kind: 'done'; readonly result: ResultOf<Row> }
  | ({ readonly kind: 'failed' } & (RefusalWith<ErrorCode> | NotSent))
  | { readonly kind: 'no_answer'; readonly why: Silence };

/** It never began and can't begin any more. */
export interface NeverBegan {
  readonly kind: 'never_began';
}

/**
 * The service knows nothing of it so far. The request may still be on its way and begin later: only the same request
 * under the same key is safe to send.
 */
export type NotSeen<Name extends string> = { readonly kind: 'not_seen' } & Reference<Name>;

/** It could not be found out. */
export type Unresolved<Name extends string> = { readonly kind: 'unresolved' } & Reference<Name> & {
    readonly why:
      | Silence
      | 'not_sent'
      /** The service refused to tell; `code` says why. */
      | 'refused'
      /** There is no record, but it is so long ago that there may have been one. */
      | 'too_old'
      /** There was a record, and there is none any more. */
      | 'record_lost'
      /** Neither an operation id nor a user with a key is known. */
      | 'nothing_to_ask_by';
    readonly code: ErrorCode | undefined;
  };

/** What became of a mutation. */
export type Resolution<Name extends string, Row extends Operation> =
  | Done<Row>
  | Failed
  | Incomplete
  | Interrupted
  | Running<Name>
  | NeverBegan
  | NotSeen<Name>
  | Unresolved<Name>;
