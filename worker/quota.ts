/**
 * Purpose: what each user's space holds, and whether it is below the limit.
 * Rights: none of its own; looks at spaces from outside, has them counted as their users.
 * Called by: handlers. Those of operations that make a space grow call `check` before they take the lock, and all that
 * change a space call `changed` when they are done.
 * Fails: closed. What can't be counted is not below the limit: `usage_failed`. Nobody waits longer than `usageTimeoutMs`.
 *
 * A count costs as much as a short run, so that counting after each run before the next may begin would halve
 * the rate of execs. A user who was far below the limit a moment ago may therefore begin another run before the
 * last one's effect is counted: it gains nothing that a longer run would not have given. Nobody is refused by
 * such a count, and `/v1/usage` never answers with one.
 */
import { Refusal } from '../protocol/errors.ts';
import { usageTimeoutMs } from '../protocol/limits.ts';
import { type Spaces, uidOf } from './spaces.ts';
import { UsageCache } from './usage/cache.ts';
import type { UsageReport } from './usage/report.ts';
import type { UsageScans } from './usage/scan.ts';

/** "A moment ago": since that count began, ms. */
const lagMs = 5_000;
/** "Far below": as much as this, bytes. */
const farBytes = 1024 ** 3;
/** From a change to the count that nobody asked for: this and some times what the last one took, ms. */
const recountDelayMs = 500;
const recountTimes = 4;
/** Users who wait for such a count; more are counted when they ask. */
const recountsMax = 256;

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

const settled = async (measuring: Measuring): Promise<void> => {
  await measuring.report.catch(() => undefined);
};

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
  /** Bounded by the turns of the scans and by those that may wait for one. */
  readonly #measuring = new Map<number, Measuring>();
  readonly #recounts = new Map<number, NodeJS.Timeout>();
  #stopping = false;

  constructor(limitBytes: number, spaces: Spaces, scans: UsageScans) {
    this.limitBytes = limitBytes;
    this.#spaces = spaces;
    this.#scans = scans;
  }

  /** No count is begun any more that nobody asked for. */
  stop(): void {
    this.#stopping = true;
    for (const timer of this.#recounts.values()) clearTimeout(timer);
    this.#recounts.clear();
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
    return this.#cache.current(user) ?? inTime(this.#measured(user, space));
  }

  /**
   * Lets pass who is below the limit. The space must have been looked at.
   * @throws Refusal `disk_quota`, and those of `measure`
   */
  async check(user: number): Promise<void> {
    if (this.limitBytes === 0 || this.#wasFarBelow(user)) return;
    if (this.isOver(await this.measure(user))) throw new Refusal('disk_quota');
  }

  /** The user's space is another than the one that was counted. */
  drop(user: number): void {
    this.#cache.drop(user);
    this.#outdate(user);
  }

  /** The user's space may hold something else now: it is counted anew soon, if that is in nobody's way. */
  changed(user: number): void {
    this.#cache.outdate(user);
    this.#outdate(user);
    if (this.limitBytes === 0 || this.#stopping || this.#recounts.size >= recountsMax || this.#recounts.has(user))
      return;
    const last = this.#cache.last(user);
    const tookMs = last === undefined ? 0 : last.endedAt - last.begunAt;
    const timer = setTimeout(() => this.#recount(user), recountDelayMs + recountTimes * tookMs);
    this.#recounts.set(user, timer.unref());
  }

  #outdate(user: number): void {
    const measuring = this.#measuring.get(user);
    if (measuring) measuring.outdated = true;
  }

  #wasFarBelow(user: number): boolean {
    const last = this.#cache.last(user);
    if (last === undefined || last.report.truncated) return false;
    return performance.now() - last.begunAt < lagMs && this.limitBytes - last.report.bytes >= farBytes;
  }

  #recount(user: number): void {
    this.#recounts.delete(user);
    if (this.#measuring.has(user) || this.#cache.current(user) || !this.#scans.hasRoom) return;
    // Whoever needs it and finds none asks for one.
    void settled(this.#begin(user, this.#spaces.pathOf(user)));
  }

  async #measured(user: number, space: string): Promise<UsageReport> {
    const underWay = this.#measuring.get(user);
    if (underWay?.outdated) await settled(underWay);
    // Any count that is there now, or was kept, began after this question.
    return this.#cache.current(user) ?? (this.#measuring.get(user) ?? this.#begin(user, space)).report;
  }

  #begin(user: number, space: string): Measuring {
    const begunAt = performance.now();
    const report = this.#scans
      .scan({ uid: uidOf(user), space })
      .then((found) => {
        this.#cache.set(user, { report: found, begunAt, endedAt: performance.now() }, measuring.outdated);
        return found;
      })
      .finally(() => this.#measuring.delete(user));
    const measuring: Measuring = { outdated: false, report };
    this.#measuring.set(user, measuring);
    return measuring;
  }
}
