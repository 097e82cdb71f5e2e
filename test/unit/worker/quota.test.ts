import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Refusal } from '../../../protocol/errors.ts';
import { Quota } from '../../../worker/quota.ts';
import { Spawner } from '../../../worker/runs/spawner.ts';
import { Spaces } from '../../../worker/spaces.ts';
import type { UsageReport } from '../../../worker/usage/report.ts';
import { type ScanTarget, UsageScans } from '../../../worker/usage/scan.ts';
import { collectingLog } from './support/collect.ts';

const GiB = 1024 ** 3;

const reportOf = (bytes: number, more: Partial<UsageReport> = {}): UsageReport => ({
  bytes,
  files: 1,
  dirs: 4,
  links: 0,
  truncated: false,
  top: [{ name: 'home', bytes, files: 1 }],
  groups: [],
  groupsTruncated: false,
  ...more,
});

/** Counts that end when the test says so. */
class StandInScans extends UsageScans {
  readonly begun: { readonly target: ScanTarget; readonly end: PromiseWithResolvers<UsageReport> }[] = [];
  room = true;

  constructor() {
    const { log } = collectingLog();
    super(new Spawner({ program: '/nowhere', folder: '/nowhere', lock: '/nowhere' }, log), '/nowhere', log);
  }

  override get hasRoom(): boolean {
    return this.room;
  }

  override scan(target: ScanTarget): Promise<UsageReport> {
    const end = Promise.withResolvers<UsageReport>();
    this.begun.push({ target, end });
    return end.promise;
  }

  /** Ends the count with this number. */
  async end(number: number, report: UsageReport): Promise<void> {
    this.begun[number]?.end.resolve(report);
    await vi.advanceTimersByTimeAsync(0);
  }
}

/** Knows of a space for whoever is named. */
class StandInSpaces extends Spaces {
  readonly there = new Set([7]);
  refusal: Refusal | undefined;

  override find(user: number): string | undefined {
    if (this.refusal) throw this.refusal;
    return this.there.has(user) ? this.pathOf(user) : undefined;
  }
}

const setup = (limitBytes = 100) => {
  const [spaces, scans] = [new StandInSpaces('/w'), new StandInScans()];
  return { quota: new Quota(limitBytes, spaces, scans), spaces, scans };
};

/** The code that it was refused with; `passed` if it was not; `waits` while it is open. */
const outcome = (answer: Promise<unknown>): (() => Promise<string>) => {
  let seen = 'waits';
  answer.then(
    () => {
      seen = 'passed';
    },
    (error: unknown) => {
      seen = error instanceof Refusal ? error.code : `no refusal: ${String(error)}`;
    },
  );
  return async () => {
    await vi.advanceTimersByTimeAsync(0);
    return seen;
  };
};

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('the limit', () => {
  it.each([
    [99, 'passed'],
    [100, 'disk_quota'],
    [101, 'disk_quota'],
  ])('of 100 with %d bytes: %s', async (bytes, expected) => {
    const { quota, scans } = setup();
    const checked = outcome(quota.check(7));
    expect(await checked()).toBe('waits');
    await scans.end(0, reportOf(bytes));
    expect(await checked()).toBe(expected);
    expect(scans.begun.map(({ target }) => target)).toEqual([{ uid: 20_007, space: '/w/u20007' }]);
    expect(quota.isOver(reportOf(bytes))).toBe(expected !== 'passed');
  });

  it('is never kept by a space that could not be counted to its end', async () => {
    const { quota, scans } = setup(10 * GiB);
    const checked = outcome(quota.check(7));
    await scans.end(0, reportOf(0, { truncated: true }));
    expect(await checked()).toBe('disk_quota');
    expect(await outcome(quota.check(7))()).toBe('disk_quota');
  });

  it.each(['usage_failed', 'workspace_broken', 'worker_unavailable', 'overloaded'] as const)(
    'is never kept by a space that could not be counted at all: %s, to each that asks, and asked anew',
    async (code) => {
      const { quota, scans } = setup();
      const [first, second] = [outcome(quota.check(7)), outcome(quota.measure(7))];
      expect(await first()).toBe('waits');
      scans.begun[0]?.end.reject(new Refusal(code));
      expect([await first(), await second()]).toEqual([code, code]);
      const third = outcome(quota.check(7));
      await scans.end(1, reportOf(0));
      expect(await third()).toBe('passed');
    },
  );

  it('of 0 is none: nothing is counted', async () => {
    const { quota, scans } = setup(0);
    expect(await outcome(quota.check(7))()).toBe('passed');
    quota.changed(7);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(scans.begun).toHaveLength(0);
    expect(quota.isOver(reportOf(Number.MAX_SAFE_INTEGER, { truncated: true }))).toBe(false);
  });
});

describe('a measurement', () => {
  it('of a user without a space is zeros, and nothing is counted', async () => {
    const { quota, scans } = setup();
    expect(await quota.measure(8)).toEqual({ ...reportOf(0), files: 0, dirs: 0, top: [] });
    expect(scans.begun).toHaveLength(0);
  });

  it('of a broken space is refused, whatever is kept', async () => {
    const { quota, spaces, scans } = setup();
    const before = outcome(quota.measure(7));
    await scans.end(0, reportOf(1));
    expect(await before()).toBe('passed');
    spaces.refusal = new Refusal('workspace_broken');
    expect(await outcome(quota.measure(7))()).toBe('workspace_broken');
  });

  it('is shared by all that ask for it', async () => {
    const { quota, scans } = setup();
    const answers = [quota.measure(7), quota.measure(7), quota.measure(7)];
    await scans.end(0, reportOf(5));
    expect(await Promise.all(answers)).toEqual([reportOf(5), reportOf(5), reportOf(5)]);
    expect(scans.begun).toHaveLength(1);
  });

  it('is kept for 30 s from when its count began', async () => {
    const { quota, scans } = setup();
    const first = quota.measure(7);
    await vi.advanceTimersByTimeAsync(10_000);
    await scans.end(0, reportOf(5));
    expect(await first).toEqual(reportOf(5));
    await vi.advanceTimersByTimeAsync(19_999);
    expect(await quota.measure(7)).toEqual(reportOf(5));
    expect(scans.begun).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    const again = outcome(quota.measure(7));
    expect(await again()).toBe('waits');
    expect(scans.begun).toHaveLength(2);
  });

  it.each(['drop', 'changed'] as const)('is forgotten at once by %s', async (way) => {
    const { quota, scans } = setup();
    const first = quota.measure(7);
    await scans.end(0, reportOf(5));
    await first;
    quota[way](7);
    const second = quota.measure(7);
    await scans.end(1, reportOf(6));
    expect(await second).toEqual(reportOf(6));
  });

  it('that a change overtook answers who asked before, and nobody who asks after', async () => {
    const { quota, scans } = setup();
    const before = quota.measure(7);
    quota.drop(7);
    const after = [outcome(quota.measure(7)), outcome(quota.measure(7))] as const;
    expect(scans.begun).toHaveLength(1);
    await scans.end(0, reportOf(5));
    expect(await before).toEqual(reportOf(5));
    expect([await after[0](), await after[1]()]).toEqual(['waits', 'waits']);
    expect(scans.begun).toHaveLength(2);
    await scans.end(1, reportOf(6));
    expect([await after[0](), await after[1]()]).toEqual(['passed', 'passed']);
    expect(await quota.measure(7)).toEqual(reportOf(6));
    expect(scans.begun).toHaveLength(2);
  });

  it('that never comes is refused after 30 s', async () => {
    const { quota, scans } = setup();
    const [measured, checked] = [outcome(quota.measure(7)), outcome(quota.check(7))];
    await vi.advanceTimersByTimeAsync(29_999);
    expect([await measured(), await checked()]).toEqual(['waits', 'waits']);
    await vi.advanceTimersByTimeAsync(1);
    expect([await measured(), await checked()]).toEqual(['usage_failed', 'usage_failed']);
    expect(scans.begun).toHaveLength(1);
  });

  it('is of one user alone', async () => {
    const { quota, spaces, scans } = setup();
    spaces.there.add(8);
    const [seven, eight] = [quota.measure(7), quota.measure(8)];
    await scans.end(1, reportOf(8));
    await scans.end(0, reportOf(7));
    expect([(await seven).bytes, (await eight).bytes]).toEqual([7, 8]);
    quota.drop(8);
    expect((await quota.measure(7)).bytes).toBe(7);
    expect(scans.begun).toHaveLength(2);
  });

  it('is forgotten, the oldest first, when all of them together are large', async () => {
    const { quota, spaces, scans } = setup();
    const groups = Array.from({ length: 1_000 }, (_, n) => ({ name: `${n}`.padEnd(521, 'x'), bytes: 0, files: 0 }));
    for (let user = 0; user < 40; user += 1) {
      spaces.there.add(user);
      const measured = quota.measure(user);
      await scans.end(user, reportOf(1, { groups }));
      await measured;
    }
    expect(await outcome(quota.measure(39))()).toBe('passed');
    expect(scans.begun).toHaveLength(40);
    void quota.measure(0);
    expect(scans.begun).toHaveLength(41);
  });
});

describe('after a change', () => {
  const counted = async (bytes: number, limit: number) => {
    const parts = setup(limit);
    const first = parts.quota.measure(7);
    await parts.scans.end(0, reportOf(bytes));
    await first;
    return parts;
  };

  it('the space is counted anew by itself, so that the next request finds it', async () => {
    const { quota, scans } = await counted(1, 100);
    quota.changed(7);
    await vi.advanceTimersByTimeAsync(600);
    expect(scans.begun).toHaveLength(2);
    await scans.end(1, reportOf(2));
    expect((await quota.measure(7)).bytes).toBe(2);
    expect(scans.begun).toHaveLength(2);
  });

  it('many changes make one count', async () => {
    const { quota, scans } = await counted(1, 100);
    for (let n = 0; n < 100; n += 1) quota.changed(7);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(scans.begun).toHaveLength(2);
  });

  it('it is not when others need the turns, when somebody asked already, nor when the worker stops', async () => {
    const { quota, scans } = await counted(1, 100);
    scans.room = false;
    quota.changed(7);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(scans.begun).toHaveLength(1);
    scans.room = true;
    quota.changed(7);
    void quota.measure(7);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(scans.begun).toHaveLength(2);
    await scans.end(1, reportOf(1));
    quota.changed(7);
    quota.stop();
    quota.changed(7);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(scans.begun).toHaveLength(2);
  });

  it('a count by itself that fails is nobody’s', async () => {
    const { quota, scans } = await counted(1, 100);
    quota.changed(7);
    await vi.advanceTimersByTimeAsync(600);
    scans.begun[1]?.end.reject(new Refusal('usage_failed'));
    await vi.advanceTimersByTimeAsync(0);
    const next = outcome(quota.check(7));
    expect(await next()).toBe('waits');
    await scans.end(2, reportOf(2));
    expect(await next()).toBe('passed');
  });

  it('who is near the limit waits for a new count, also one who was just below it', async () => {
    for (const [bytes, limit] of [
      [0, 100],
      [99, 100],
      [1, GiB],
      [9 * GiB + 1, 10 * GiB],
    ] as const) {
      const { quota, scans } = await counted(bytes, limit);
      quota.changed(7);
      const checked = outcome(quota.check(7));
      expect(await checked()).toBe('waits');
      await scans.end(1, reportOf(limit));
      expect(await checked()).toBe('disk_quota');
    }
  });

  it('who was a GiB below it a moment ago need not wait, but is not told an old number', async () => {
    const { quota, scans } = await counted(9 * GiB, 10 * GiB);
    quota.changed(7);
    expect(await outcome(quota.check(7))()).toBe('passed');
    expect(scans.begun).toHaveLength(1);
    expect(await outcome(quota.measure(7))()).toBe('waits');
    expect(scans.begun).toHaveLength(2);
  });

  it('a moment is 5 s, however often the space changes', async () => {
    const { quota, scans } = await counted(0, 10 * GiB);
    scans.room = false;
    for (let passed = 0; passed < 4_900; passed += 100) {
      quota.changed(7);
      expect(await outcome(quota.check(7))()).toBe('passed');
      await vi.advanceTimersByTimeAsync(100);
    }
    await vi.advanceTimersByTimeAsync(200);
    quota.changed(7);
    expect(await outcome(quota.check(7))()).toBe('waits');
  });

  it('who was over the limit is not refused by an old count', async () => {
    const { quota, scans } = await counted(200, 100);
    expect(await outcome(quota.check(7))()).toBe('disk_quota');
    quota.changed(7);
    const checked = outcome(quota.check(7));
    await scans.end(1, reportOf(1));
    expect(await checked()).toBe('passed');
  });

  it('who was dropped waits in any case', async () => {
    const { quota } = await counted(0, 10 * GiB);
    quota.drop(7);
    expect(await outcome(quota.check(7))()).toBe('waits');
  });
});

describe('looking for a space', () => {
  it('finds one as it was made, makes none, and takes no other', () => {
    vi.useRealTimers();
    const folder = mkdtempSync('/tmp/runner-test-quota-');
    try {
      const spaces = new Spaces(folder);
      expect(spaces.find(7)).toBeUndefined();
      const path = join(folder, 'u20007');
      mkdirSync(path, { mode: 0o700 });
      expect(() => spaces.find(7)).toThrow(Refusal);
      if (process.getuid?.() === 0) {
        chownSync(path, 20_007, 20_007);
        expect(spaces.find(7)).toBe(path);
        chmodSync(path, 0o755);
        expect(() => spaces.find(7)).toThrow(Refusal);
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
