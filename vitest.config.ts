import { defineConfig } from 'vitest/config';

// Two groups: `unit` needs no rights and runs in parallel; `root` starts real processes under
// production rights, one file at a time, so that no test sees another's processes.
export default defineConfig({
  test: {
    projects: [
      { test: { name: 'unit', include: ['test/unit/**/*.test.ts'], testTimeout: 30_000, hookTimeout: 30_000 } },
      {
        test: {
          name: 'root',
          include: ['test/root/**/*.test.ts', 'test/e2e/**/*.test.ts', 'test/container/**/*.test.ts'],
          fileParallelism: false,
          testTimeout: 60_000,
          hookTimeout: 60_000,
          retry: 0,
        },
      },
    ],
  },
});
