import { defineConfig } from 'vitest/config';

// Three groups, one after the other. `unit` needs no rights. `root` starts real processes under production rights.
// `alone` does too, and each of its files has the machine to itself: it bombs, kills, and counts what is left.
const group = (name: string, groupOrder: number, workers: number, timeoutMs: number, include: string[]) => ({
  test: {
    name,
    include: include.map((place) => (place.endsWith('.test.ts') ? `test/${place}` : `test/${place}/**/*.test.ts`)),
    sequence: { groupOrder },
    maxWorkers: workers,
    testTimeout: timeoutMs,
    hookTimeout: timeoutMs,
    retry: 0,
  },
});

export default defineConfig({
  test: {
    projects: [
      group('unit', 0, 2, 30_000, ['unit']),
      group('root', 1, 2, 60_000, [
        'root/worker',
        'root/helper',
        'e2e/exec',
        'e2e/ledger',
        'e2e/processes',
        'e2e/refusals',
        'e2e/usage',
        'e2e/files',
        'e2e/hostile-gateway',
      ]),
      group('alone', 2, 1, 60_000, ['root/native', 'e2e/crash', 'e2e/chaos.test.ts', 'container']),
    ],
  },
});
