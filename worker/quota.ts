/**
 * Purpose: what each user's space holds, and whether it is below the limit.
 * Rights: none of its own; looks at spaces from outside, has them counted as their users.
 * Called by: handlers. Those of operations that make a space grow call `check` before they take the lock, and all that
 * change a space call `changed` when they are done.
 * Fails: closed. What can't be counted is not below the limit: `usage_failed`. Nobody waits longer than `usageTimeoutMs`.
 */
import { Refusal } from '../protocol/errors.ts';
import { usageTimeoutMs } from '../protocol/limits.ts';
import { type Spaces, uidOf } from './spaces.ts';
import { UsageCache } from './usage/cache.ts';
import type { UsageReport } from './usage/report.ts';
import type { UsageScans } from './usage/scan.ts';

/** A count under way. */
interface Measuring {
  readonly report: Promise<UsageReport>;
  /** The space changed since it began: good enough for who asked before, not for who asks now. */
  outdated: boolean;
}

const nothing: UsageReport = {
  bytes: 0,
  files: 0,
  dirs: 0,
  links: 0,
  truncated: false,
  top: [],
  groups: [],
  groupsTruncated: false,
};

const settled = (measuring: Measuring | undefined): Promise<unknown> =>
  measuring?.report.catch(() => undefined) ?? Promise.resolve();

const inTime = async <T>(answer: Promise<T>): Promise<T> => {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Refusal('usage_failed')), usageTimeoutMs);
  return Promise.race([answer, late.promise]).finally(() => clearTimeout(timer));
};

/** Counts users' spaces, one count at a time for each user, and keeps what came out for a while. */
export class Quota {
  /** Bytes that a space may hold; 0 = as much as it likes. */
  readonly limitBytes: number;
  readonly #spaces: Spaces;
  readonly #scans: UsageScans;
  readonly #cache = new UsageCache();
  /** Bounded by the turns of the scans and those that may wait for one. */
  readonly #measuring = new Map<number, Measuring>();
  #stopping = false;

  constructor(limitBytes: number, spaces: Spaces, scans: UsageScans) {
    this.limitBytes = limitBytes;
    this.#spaces = spaces;
    this.#scans = scans;
  }

  /** No count is begun any more that nobody asked for. */
  stop(): void {
    this.#stopping = true;
  }

  /** The quota's own test. A space of which not everything was counted is never below the limit. */
  isOver({ bytes, truncated }: UsageReport): boolean {
    return this.limitBytes !== 0 && (truncated || bytes >= this.limitBytes);
  }

  /**
   * What a user's space holds: nothing if there is none yet, and none is made.
   * @throws Refusal `usage_failed`, `workspace_broken`, `worker_unavailable`, `overloaded`
   */
  async measure(user: number): Promise<UsageReport> {
    const space = this.#spaces.find(user);
    if (space === undefined) return nothing;
    return this.#cache.get(user) ?? inTime(this.#measured(user, space));
  }

  /**
   * Lets pass who is below the limit.
   * @throws Refusal `disk_quota`, and those of `measure`
   */
  async check(user: number): Promise<void> {
    if (this.limitBytes === 0) return;
    if (this.isOver(await this.measure(user))) throw new Refusal('disk_quota');
  }

  /** What is known of a user's space is no longer so. */
  drop(user: number): void {
    this.#cache.drop(user);
    const measuring = this.#measuring.get(user);
    if (measuring) measuring.outdated = true;
  }

  /** As `drop`, and counts anew if that is in nobody's way, so that the user's next request need not wait for it. */
  changed(user: number): void {
    this.drop(user);
    if (this.limitBytes === 0 || this.#stopping || this.#measuring.has(user) || !this.#scans.hasRoom) return;
    // Whoever needs it gets the same refusal, or asks again.
    void settled(this.#begin(user, this.#spaces.pathOf(user)));
  }

  async #measured(user: number, space: string): Promise<UsageReport> {
    const underWay = this.#measuring.get(user);
    if (underWay?.outdated) await settled(underWay);
    // Any count that is there now, or was kept, began after this question.
    return this.#cache.get(user) ?? (this.#measuring.get(user) ?? this.#begin(user, space)).report;
  }

  #begin(user: number, space: string): Measuring {
    const begunAt = performance.now();
    const measuring: Measuring = {
      outdated: false,
      report: this.#scans.scan({ uid: uidOf(user), space }).then(
        (report) => {
          this.#measuring.delete(user);
          if (!measuring.outdated) this.#cache.set(user, report, begunAt);
          return report;
        },
        (error: unknown) => {
          this.#measuring.delete(user);
          throw error;
        },
      ),
    };
    this.#measuring.set(user, measuring);
    return measuring;
  }
}
