/**
 * Purpose: what the handlers of the file routes need of the pool of fs helpers, and how they use it.
 * Rights: root; everything is done by the helpers, as the users.
 * Called by: files.ts and workspace-reset.ts.
 * Fails: with the helper's refusal, `workspace_broken` or `busy`.
 */
import type { FsCall } from '../../helper/contract/fs.ts';
import type { AuditAction } from '../../protocol/audit.ts';
import type { WorkerConfig } from '../config.ts';
import type { HandlerContext } from '../handlers.ts';
import type { UserLocks } from '../locks.ts';
import type { Spaces } from '../spaces.ts';

/** The fs helpers of all users. */
export interface FileHelpers {
  /**
   * Has one call done by the user's helper.
   * @returns what it answered, of a shape that is still to be checked
   * @throws Refusal of the helper's, or `file_failed` for a read and `uncertain` for a mutation that got no answer
   */
  call(
    user: number,
    call: FsCall,
    options: { readonly deadlineMs: number; readonly signal: AbortSignal },
  ): Promise<unknown>;
  /** Ends the user's helpers; the next call gets a new one. */
  discard(user: number): void;
}

/** What the handlers are made of. */
export interface FileDependencies {
  readonly config: WorkerConfig;
  readonly spaces: Spaces;
  readonly locks: UserLocks;
  readonly helpers: FileHelpers;
}

/**
 * Runs a mutation under the user's lock: from before its helper is asked until that one has answered or is gone.
 * @throws Refusal `workspace_broken`, `busy`
 */
export const locked = async <T>(
  { spaces, locks }: FileDependencies,
  user: number,
  action: AuditAction,
  { operationId }: HandlerContext,
  work: () => Promise<T>,
): Promise<T> => {
  spaces.ensure(user);
  const release = locks.acquire(user, { action, operationId });
  try {
    return await work();
  } finally {
    release();
  }
};
