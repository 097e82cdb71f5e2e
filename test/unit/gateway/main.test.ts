import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, test, vi } from 'vitest';

// Processes start slowly on a busy machine.
vi.setConfig({ testTimeout: 60_000 });

const program = fileURLToPath(new URL('../../../gateway/main.ts', import.meta.url));

/** Runs the gateway until it ends. */
const run = async (environment: Record<string, string>) => {
  const child = spawn(process.execPath, [program], { env: environment, stdio: ['ignore', 'pipe', 'pipe'] });
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { stdout, stderr, code };
};

test('a bad setting stops the start with its name, and nothing on standard output', async () => {
  const { stdout, stderr, code } = await run({ RUNNER_ADDR: 'planted', RUNNER_TOKEN: 'planted' });
  expect(code).toBe(78);
  expect(stderr).toBe('RUNNER_ADDR must be host:port, [IPv6]:port or :port.\n');
  expect(stdout).toBe('');
});

test('rights that are too many stop the start with a sentence', async () => {
  // Whoever runs this test: `/` can be listed, and that alone is one right too many.
  const { stdout, stderr, code } = await run({ RUNNER_WORK_DIR: '/' });
  expect(code).toBe(78);
  expect(stderr).toMatch(/^The gateway must [^\n]*\.\n$/);
  expect(stdout).toBe('');
});
