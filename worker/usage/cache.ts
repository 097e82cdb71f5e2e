import { usageCacheMs } from '../../protocol/limits.ts';
import type { UsageReport } from './report.ts';

/** What all kept reports may weigh together, bytes; one with long lists weighs up to 2 MiB. */
const weightMax = 16 * 1024 * 1024;
/** What a report takes beside its lists, and an item beside its name, bytes. */
const fixedWeight = 256;

/** A report and how it was come by. */
export interface Kept {
  readonly report: UsageReport;
  /** When its count began and ended, on the monotonic clock, ms. */
  readonly begunAt: number;
  readonly endedAt: number;
}

interface Entry extends Kept {
  readonly weight: number;
  /** The space changed since. */
  outdated: boolean;
}

const weightOf = ({ top, groups }: UsageReport): number =>
  [...top, ...groups].reduce((sum, { name }) => sum + fixedWeight + 2 * name.length, fixedWeight);

/** The last report of each user for `usageCacheMs` from when its count began; the oldest go when all weigh too much. */
export class UsageCache {
  readonly #entries = new Map<number, Entry>();
  #weight = 0;

  /** What was counted last, whether or not the space changed since. */
  last(user: number): Kept | undefined {
    const entry = this.#entries.get(user);
    if (entry && performance.now() >= entry.begunAt + usageCacheMs) this.drop(user);
    return this.#entries.get(user);
  }

  /** What a user's space holds, as far as is known. */
  current(user: number): UsageReport | undefined {
    const entry = this.last(user);
    return entry && this.#entries.get(user)?.outdated === false ? entry.report : undefined;
  }

  set(user: number, kept: Kept, outdated: boolean): void {
    this.drop(user);
    const weight = weightOf(kept.report);
    this.#entries.set(user, { ...kept, weight, outdated });
    this.#weight += weight;
    for (const oldest of this.#entries.keys()) {
      if (this.#weight <= weightMax) break;
      this.drop(oldest);
    }
  }

  /** The space changed: what was counted is not what it holds any more. */
  outdate(user: number): void {
    const entry = this.#entries.get(user);
    if (entry) entry.outdated = true;
  }

  /** Forgets a user. */
  drop(user: number): void {
    this.#weight -= this.#entries.get(user)?.weight ?? 0;
    this.#entries.delete(user);
  }
}
