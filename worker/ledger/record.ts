/**
 * Purpose: what the ledger holds of one mutation, and what its two sides (the worker's main thread and the ledger's
 * own) say to each other.
 * Rights: none. Types only.
 * Called by: everything in this folder.
 */
import type { OperationState, RecordedOutcome } from '../../protocol/operations/operation-status.ts';

/** One operation as it is on disk: ids, numbers, fixed words and digests. There is no field for anything of the request itself. */
export interface LedgerRecord {
  readonly operationId: string;
  readonly user: number;
  /** Row of the operation table. */
  readonly operation: string;
  /** Keyed digest of the request, see digest.ts. */
  readonly digest: Uint8Array;
  readonly state: OperationState;
  /** ms since 1970. */
  readonly startedAt: number;
  readonly finishedAt: number | null;
  readonly outcome: RecordedOutcome | null;
  /** The tool's exit code, where one was seen. */
  readonly exit: number | null;
}

/** What is known of one that was cut off. */
export type Interrupted = Pick<LedgerRecord, 'user' | 'operation'>;

/** What is put down before an effect. */
export type NewRecord = Pick<LedgerRecord, 'operationId' | 'user' | 'operation' | 'digest' | 'startedAt'> & {
  /** Keyed digest of the Idempotency-Key; null for an operation without one. */
  readonly key: Uint8Array | null;
};

/** What is put down after it. */
export interface Finish {
  readonly operationId: string;
  readonly finishedAt: number;
  readonly outcome: RecordedOutcome;
  readonly exit: number | null;
  /** The effect did not begin: the key is free again. */
  readonly releaseKey: boolean;
}

/** One thing that is asked of the ledger's thread. */
export type LedgerRequest =
  | { readonly ask: 'begin'; readonly record: NewRecord }
  | { readonly ask: 'finish'; readonly finish: Finish }
  | { readonly ask: 'byKey'; readonly user: number; readonly key: Uint8Array }
  | { readonly ask: 'byId'; readonly operationId: string };

/** Its answer: a record or none, `done`, `duplicate` (an operation id that is on record), or why nothing could be done. */
export type LedgerAnswer =
  | { readonly came: 'done' }
  | { readonly came: 'record'; readonly record: LedgerRecord | undefined }
  | { readonly came: 'duplicate' }
  /** Nothing is on record, but something may have been: see gaps in database.ts. */
  | { readonly came: 'forgotten' }
  | { readonly came: 'failed'; readonly code: string };

/** What the thread says of itself, once, when it can be asked; or why it never can. */
export type LedgerOpening =
  | {
      readonly opened: true;
      /** Operations that an earlier life left unfinished: no more than can be under way. */
      readonly interrupted: readonly Interrupted[];
      /** The file that was there could not be used, and was put aside. */
      readonly setAside: boolean;
      /** There was a ledger once, and no file of it is where it should be. */
      readonly missing: boolean;
      /** False when there was no room on the disk to be kept free. */
      readonly primed: boolean;
    }
  | {
      readonly opened: false;
      readonly code: string;
      /** The file was written by a newer version: it will not pass. */
      readonly newer: boolean;
    };
