/**
 * Purpose: what the handlers of the file routes need of the pool of fs helpers, and the one way that a change goes.
 * Rights: root; everything is done by the helpers, as the users.
 * Called by: files.ts and workspace-reset.ts.
 * Fails: with the helper's refusal, or what stands before it: `workspace_broken`, the quota's, `busy`, the ledger's.
 */
import type { FsCall } from '../../helper/contract/fs.ts';
import type { AuditAction } from '../../protocol/audit.ts';
import type { WorkerConfig } from '../config.ts';
import type { HandlerContext } from '../handlers.ts';
import type { UserLocks } from '../locks.ts';
import type { Quota } from '../quota.ts';
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
  readonly quota: Quota;
  readonly locks: UserLocks;
  readonly helpers: FileHelpers;
}

/** A change of a user's space. */
interface Change {
  readonly user: number;
  readonly action: AuditAction;
  /** It can make the space larger: refused to who is at the limit. */
  readonly grows: boolean;
  readonly call: FsCall;
  readonly deadlineMs: number;
}

/**
 * Has a change done under the user's lock: from before it is on record until its helper has answered or is gone.
 * @returns what the helper answered, of a shape that is still to be checked
 * @throws Refusal
 */
export const change = async (
  { spaces, quota, locks, helpers }: FileDependencies,
  { user, action, grows, call, deadlineMs }: Change,
  { operationId, signal, begin }: HandlerContext,
): Promise<unknown> => {
  spaces.ensure(user);
  if (grows) await quota.check(user);
  const release = locks.acquire(user, { action, operationId });
  try {
    await begin();
    try {
      return await helpers.call(user, call, { deadlineMs, signal });
    } finally {
      // However it ended, it may have had a part of its effect.
      quota.changed(user);
      // What they hold belongs to the space as it was.
      if (call.verb === 'reset') helpers.discard(user);
    }
  } finally {
    release();
  }
};
