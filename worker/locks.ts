/**
 * Purpose: one writer per user.
 * Rights: none of its own.
 * Called by: handlers, before they touch anything of a user's.
 * Fails: with the refusal `busy`; nobody ever waits.
 */
import type { AuditAction } from '../protocol/audit.ts';
import { Refusal } from '../protocol/errors.ts';

/** What holds a user's lock, as `busy` tells it. */
export interface LockHolder {
  readonly action: AuditAction;
  readonly operationId: string;
  /** Of a process. */
  readonly processId?: string;
}

/**
 * One writer per user: whoever changes a user's files or runs a tool holds that user's lock until all of its
 * subtree is gone. Nobody ever waits for it.
 */
export class UserLocks {
  readonly #holders = new Map<number, LockHolder>();

  /**
   * Takes a user's lock and returns what gives it back.
   * @throws Refusal `busy`, naming the holder
   */
  acquire(user: number, holder: LockHolder): () => void {
    const held = this.#holders.get(user);
    if (held) throw new Refusal('busy', { ...held });
    this.#holders.set(user, holder);
    return () => {
      if (this.#holders.get(user) === holder) this.#holders.delete(user);
    };
  }
}
