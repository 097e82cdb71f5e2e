import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { faultOf } from '../../../gateway/log.ts';

// Processes start slowly on a busy machine.
vi.setConfig({ testTimeout: 60_000 });

describe('what is logged of something unforeseen', () => {
  test('is its type and where it came from, never its message', () => {
    const fault = faultOf(new SyntaxError('planted\nplanted'));
    expect(fault.type).toBe('SyntaxError');
    expect(fault.stack).toContain('log.test.ts');
    expect(JSON.stringify(fault)).not.toContain('planted');
  });

  test('is its code, for errors of the system', () => {
    expect(faultOf(Object.assign(new Error('planted'), { code: 'EPIPE' })).code).toBe('EPIPE');
  });

  test('is its type alone, for what is no error', () => {
    expect(faultOf('planted')).toEqual({ type: 'string', stack: '' });
  });
});

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
