/**
 * What the fs helper and the worker say to each other over the helper's standard input and output: frames of a u32
 * big-endian length and that many bytes of UTF-8 JSON. Both sides parse strictly. Limits come along with each call.
 */

/** Largest frame, bytes after the length. */
export const fsFrameBytesMax = 4 * 1024 * 1024;

/** What a helper can be asked for. */
export const fsVerbs = [
  'list',
  'read',
  'write',
  'delete',
  'reset',
  'repository',
  'scratch',
  'unregister',
  'place',
  'clear',
] as const;

/** One verb. */
export type FsVerb = (typeof fsVerbs)[number];

/** Kinds of entries. What a link leads to is never told. */
export const fsKinds = ['file', 'dir', 'symlink', 'other'] as const;

/** The fields of each verb's call. `path` is relative to the home; empty is the home itself. */
export interface FsCalls {
  /** @property entriesMax most entries to answer with, the first ones in order */
  readonly list: { readonly path: string; readonly entriesMax: number };
  /** @property bytesMax largest content, bytes; @property probeBytes how far a NUL makes it binary */
  readonly read: { readonly path: string; readonly bytesMax: number; readonly probeBytes: number };
  readonly write: { readonly path: string; readonly content: string };
  readonly delete: { readonly path: string };
  readonly reset: Readonly<Record<never, never>>;
  /**
   * What is at `repos/<project>`, and at `worktree` if that isn't null.
   * @property worktree `work/<id>/<project>`
   */
  readonly repository: { readonly project: string; readonly worktree: string | null };
  /** Makes the scratch folder anew, for one git workflow; with a clean bare repository in it if one is asked for. */
  readonly scratch: { readonly clean: FsCleanRepository | null };
  /**
   * Takes the registrations away that a project has of a worktree at this path, or in the scratch folder, whose folder is
   * gone; and the lock files that a killed git left where the next one needs them.
   * @property refs full names of the refs that are about to be changed
   */
  readonly unregister: { readonly project: string; readonly worktree: string; readonly refs: readonly string[] };
  /**
   * Moves the folder `tree` of the scratch folder to a place where nothing is, in one step; the folders above are made.
   * @property project whose worktree it is, which then knows it by its new path; null for a clone
   */
  readonly place: { readonly path: string; readonly project: string | null };
  /** Removes what is left of a workflow, and of whatever else this helper does. */
  readonly clear: Readonly<Record<never, never>>;
}

/** Bare repositories without any configuration of the user's. */
export interface FsCleanRepository {
  readonly format: 'sha1' | 'sha256';
  /** With a project also `borrowed`, which has that one's objects and the ends of its shallow history. */
  readonly borrows: string | null;
}

/** The scratch folder of git workflows within a space, and what can be in it. */
export const scratchFolder = 'tmp/.git-workflow';
export const scratchNames = { home: 'home', clean: 'clean.git', borrowed: 'borrowed.git', tree: 'tree' } as const;

/** One call, without its number. */
export type FsCall = { readonly [Verb in FsVerb]: { readonly verb: Verb } & FsCalls[Verb] }[FsVerb];

/** One entry of a folder: size in bytes, `modified` in ISO 8601 UTC. */
export interface FsEntry {
  readonly name: string;
  readonly kind: (typeof fsKinds)[number];
  readonly size: number;
  readonly modified: string;
}

/** What can be at the place of a clone, and of a worktree; `other` is neither that nor nothing. */
export const fsProjects = ['absent', 'clone', 'other'] as const;
export const fsWorktrees = ['absent', 'linked', 'other'] as const;

/** What each verb answers. */
export interface FsResults {
  readonly list: { readonly entries: readonly FsEntry[]; readonly truncated: boolean };
  readonly read: {
    readonly size: number;
    readonly text: boolean;
    readonly content: string | null;
    readonly reason: 'binary' | 'too_large' | null;
  };
  readonly write: { readonly size: number };
  readonly delete: Readonly<Record<never, never>>;
  readonly reset: Readonly<Record<never, never>>;
  /** @property worktree null when it wasn't asked for */
  readonly repository: {
    readonly project: (typeof fsProjects)[number];
    readonly worktree: (typeof fsWorktrees)[number] | null;
  };
  readonly scratch: Readonly<Record<never, never>>;
  readonly unregister: Readonly<Record<never, never>>;
  readonly place: Readonly<Record<never, never>>;
  readonly clear: Readonly<Record<never, never>>;
}

/** From the worker: once whose helper it is, then one call at a time. */
export type FsRequest =
  | { readonly kind: 'become'; readonly uid: number; readonly space: string }
  | ({ readonly kind: 'call'; readonly id: number } & FsCall);

/** Refusals of the helper's own, by codes of protocol/errors.ts. */
export const fsRefusals = [
  'workspace_broken',
  'outside_workspace',
  'not_found',
  'bad_target',
  'symlink',
  'is_directory',
  'exists',
  'file_failed',
  'write_failed',
  'reset_failed',
] as const;

/** One of them. */
export type FsRefusalCode = (typeof fsRefusals)[number];

/** From the helper: `ready` once it is up, `dropped` once it is the user's, then one answer for each call. */
export type FsReply =
  | { readonly kind: 'ready' }
  | { readonly kind: 'dropped' }
  | { readonly kind: 'refused'; readonly id?: number; readonly code: FsRefusalCode }
  | { readonly kind: 'result'; readonly id: number; readonly result: FsResults[FsVerb] };
