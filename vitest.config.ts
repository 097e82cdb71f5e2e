import { defineConfig } from 'vitest/config';

// Three groups, one after the other. `unit` needs no rights. `root` starts real processes under production rights; its
// files have users of their own, and wait more than they work, so three go at once.
// `alone` does too, and each of its files has the machine to itself: it bombs, or holds the service to its times.
const group = (name: string, groupOrder: number, workers: number, timeoutMs: number, files: Files) => ({
  test: {
    name,
    include: files.include.map((place) => `test/${place}`),
    exclude: (files.exclude ?? []).map((place) => `test/${place}`),
    sequence: { groupOrder },
    maxWorkers: workers,
    testTimeout: timeoutMs,
    hookTimeout: timeoutMs,
    retry: 0,
    isolate: false,
  },
});

interface Files {
  readonly include: readonly string[];
  readonly exclude?: readonly string[];
}

const alone = [
  'root/native/ending.test.ts',
  'root/native/incomplete.test.ts',
  'root/native/init.test.ts',
  'root/native/no-process-to-be-had.test.ts',
  'e2e/crash/many-runs.test.ts',
  'e2e/crash/processes.test.ts',
  'e2e/crash/stop.test.ts',
];

export default defineConfig({
  test: {
    projects: [
      group('unit', 0, 2, 30_000, { include: ['unit/**/*.test.ts'] }),
      // All that the other groups leave: a file that nobody has thought of is run here, and not left out.
      group('root', 1, 3, 300_000, { include: ['**/*.test.ts'], exclude: ['unit/**', ...alone] }),
      group('alone', 2, 1, 300_000, { include: alone }),
    ],
  },
});
