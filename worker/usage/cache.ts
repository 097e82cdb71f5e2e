import { usageCacheMs } from '../../protocol/limits.ts';
import type { UsageReport } from './report.ts';

/** What all kept reports may weigh together, bytes; one with long lists weighs up to 2 MiB. */
const weightMax = 16 * 1024 * 1024;
/** What a report takes beside its lists, and an item beside its name, bytes. */
const fixedWeight = 256;

interface Kept {
  readonly report: UsageReport;
  /** On the monotonic clock, ms. */
  readonly until: number;
  readonly weight: number;
}

const weightOf = ({ top, groups }: UsageReport): number =>
  [...top, ...groups].reduce((sum, { name }) => sum + fixedWeight + 2 * name.length, fixedWeight);

/** Reports by user, each for `usageCacheMs` from when its count began; the oldest go when all of them weigh too much. */
export class UsageCache {
  readonly #kept = new Map<number, Kept>();
  #weight = 0;

  /** The report of a user, while it is good. */
  get(user: number): UsageReport | undefined {
    const found = this.#kept.get(user);
    if (found && performance.now() >= found.until) this.drop(user);
    return this.#kept.get(user)?.report;
  }

  /** Keeps a report. @param begunAt when its count began, on the monotonic clock, ms */
  set(user: number, report: UsageReport, begunAt: number): void {
    this.drop(user);
    const weight = weightOf(report);
    this.#kept.set(user, { report, until: begunAt + usageCacheMs, weight });
    this.#weight += weight;
    for (const oldest of this.#kept.keys()) {
      if (this.#weight <= weightMax) break;
      this.drop(oldest);
    }
  }

  /** Forgets what is known of a user. */
  drop(user: number): void {
    this.#weight -= this.#kept.get(user)?.weight ?? 0;
    this.#kept.delete(user);
  }
}
