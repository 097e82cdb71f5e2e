import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { expect, onTestFinished, test, vi } from 'vitest';

// Processes start slowly on a busy machine.
vi.setConfig({ testTimeout: 60_000 });

test('a log whose reader stalls drops lines: it neither blocks nor eats memory', async () => {
  const program = new URL('./stalled-log.ts', import.meta.url);
  // Nobody reads the child's standard error.
  const child: ChildProcess = fork(program, { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  const [growth] = (await once(child, 'message')) as [number];
  expect(growth).toBeLessThan(64 * 1024 * 1024);
});
