import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Duplex, Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test, vi } from 'vitest';

// Processes start slowly on a busy machine.
vi.setConfig({ testTimeout: 60_000 });

const program = fileURLToPath(new URL('./init-child.ts', import.meta.url));

/** Starts a process with a channel at its descriptor 3, as init does, and waits until it says that it is ready. */
const startChild = async () => {
  const child = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'inherit', 'pipe'] });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  const channel = child.stdio[3] as Duplex;
  const [ready] = (await once(channel, 'data')) as [Buffer];
  expect(ready.toString()).toBe('R');
  return { channel, said: child.stdout as Readable };
};

test('the byte D asks for a stop', async () => {
  const { channel, said } = await startChild();
  channel.write('D');
  expect(String((await once(said, 'data'))[0])).toBe('drain\n');
});

test('the end of the channel means that the parent is gone', async () => {
  const { channel, said } = await startChild();
  channel.destroy();
  expect(String((await once(said, 'data'))[0])).toBe('gone\n');
});
