import { defineConfig } from 'vitest/config';

// Three groups, one after the other. `unit` needs no rights. `root` starts real processes under production rights; its
// files have users of their own, and wait more than they work, so three go at once.
// `alone` does too, and each of its files has the machine to itself: it bombs, or holds the service to its times.
const group = (name: string, groupOrder: number, workers: number, timeoutMs: number, include: string[]) => ({
  test: {
    name,
    include: include.map((place) => (place.endsWith('.test.ts') ? `test/${place}` : `test/${place}/**/*.test.ts`)),
    sequence: { groupOrder },
    maxWorkers: workers,
    testTimeout: timeoutMs,
    hookTimeout: timeoutMs,
    retry: 0,
    isolate: false,
  },
});

export default defineConfig({
  test: {
    projects: [
      group('unit', 0, 2, 30_000, ['unit']),
      group('root', 1, 3, 60_000, [
        'root/worker',
        'root/helper',
        'root/native/crashes.test.ts',
        'root/native/helper.test.ts',
        'root/native/output.test.ts',
        'root/native/peercred.test.ts',
        'root/native/plan-fuzz.test.ts',
        'root/native/refusals.test.ts',
        'root/native/terminal.test.ts',
        'root/native/told-tree.test.ts',
        'root/native/tmpfiles.test.ts',
        'root/native/usage.test.ts',
        'root/native/what-a-tool-sees.test.ts',
        'e2e/chaos.test.ts',
        'e2e/crash/kill-a-part.test.ts',
        'e2e/crash/left-overs.test.ts',
        'container',
        'e2e/exec',
        'e2e/ledger',
        'e2e/processes',
        'e2e/refusals',
        'e2e/usage',
        'e2e/files',
        'e2e/hostile-gateway',
      ]),
      group('alone', 2, 1, 60_000, [
        'root/native/ending.test.ts',
        'root/native/incomplete.test.ts',
        'root/native/init.test.ts',
        'root/native/no-process-to-be-had.test.ts',
        'e2e/crash/many-runs.test.ts',
        'e2e/crash/processes.test.ts',
        'e2e/crash/stop.test.ts',
      ]),
    ],
  },
});
