import { chownSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { inOwnProcesses, nativeProgram, ownFolder, runToEnd, workerCommand } from './support/as-worker.ts';

let folder: ReturnType<typeof ownFolder>;

beforeEach(() => {
  folder = ownFolder();
});

afterEach(() => folder.remove());

/** Plays a scenario of the script against the real native program, and returns what it saw. */
const played = (scenario: string): unknown => {
  const command = inOwnProcesses(workerCommand('runs-script', [scenario, folder.path, nativeProgram]));
  const { status, stdout, stderr } = runToEnd(command);
  expect({ status, stderr }).toStrictEqual({ status: 0, stderr: expect.any(String) });
  return JSON.parse(stdout);
};

const succeeded = { kind: 'exit', reason: 'exited', exitCode: 0, signal: null };
const killed = (reason: string) => ({ kind: 'exit', reason, exitCode: null, signal: 'SIGKILL' });

describe('the spawner', () => {
  it('gets ready in a folder that only root can enter, runs tools, and is gone when it is stopped', () => {
    expect(played('life')).toStrictEqual({
      folder: '40700 0',
      running: 1,
      end: { kind: 'exit', reason: 'exited', exitCode: 3, signal: null },
      output: ['stderr:err\n', 'stdout:937000\n'],
      left: [],
      native: [],
      pid: null,
    });
  });

  it('ends every run before it is gone itself', () => {
    expect(played('stopEndsRuns')).toStrictEqual({
      end: killed('spawnerLost'),
      after: [],
      native: [],
    });
  });

  it('that is killed is replaced; its runs were ended, and told as such', () => {
    expect(played('restarted')).toStrictEqual({
      end: killed('spawnerLost'),
      atGone: [],
      another: true,
      again: succeeded,
      said: true,
    });
  });

  it('of a second worker on the same lock refuses within its bound, and the first goes on', () => {
    const { refused, first } = played('locked') as { refused: { message: string; ms: number }; first: unknown };
    expect(refused.message).toMatch(/the spawner (exited at its start|did not get ready in time)/);
    expect(refused.ms).toBeGreaterThan(5_000);
    expect(refused.ms).toBeLessThan(20_000);
    expect(first).toStrictEqual(succeeded);
  });

  it('of a second worker waits for the first to be gone', () => {
    expect(played('handedOver')).toStrictEqual({ before: false, after: succeeded });
  });

  it('that was never started refuses at once', () => {
    const refusal = {
      name: 'Refusal',
      code: 'worker_unavailable',
      message: expect.any(String),
      ms: expect.any(Number),
    };
    expect(played('neverStarted')).toStrictEqual({ ready: refusal, start: refusal });
  });

  it('that cannot be started says so, and whoever asks is refused in bounded time', () => {
    const { started, ready } = played('missingProgram') as Record<string, { code: string; ms: number }>;
    expect(started).toMatchObject({ code: 'ENOENT' });
    expect(ready).toMatchObject({ code: 'worker_unavailable' });
    expect(ready?.ms).toBeLessThan(10_000);
  });

  it('takes no folder but root’s own, and tightens that', () => {
    mkdirSync(join(folder.path, 'foreign'));
    chownSync(join(folder.path, 'foreign'), 1234, 1234);
    const refusal = expect.objectContaining({ message: expect.stringContaining('not root’s own') });
    expect(played('folders')).toStrictEqual({
      link: refusal,
      foreign: refusal,
      foreignOwner: 1234,
      open: '40700',
      socket: '140600 0',
      native: 1,
    });
  });
});

describe('a run', () => {
  it('whose supervisor is killed is lost, and gone only when nothing of its user is left', () => {
    expect(played('lost')).toStrictEqual({
      end: { kind: 'lost' },
      meanwhile: { gone: false, left: 101 },
      atGone: [],
      again: succeeded,
      sameSpawner: true,
    });
  });

  it('whose output nobody takes waits, costs no memory, and goes on where it was', () => {
    const seen = played('stalled') as { stalledAt: number; end: unknown; whole: boolean; grownMiB: number };
    expect(seen.end).toStrictEqual(succeeded);
    expect(seen.whole).toBe(true);
    // What one read of the socket can hold.
    expect(seen.stalledAt).toBeLessThanOrEqual(2 * 65_536);
    expect(seen.grownMiB).toBeLessThan(100);
  });

  it('is ended by its signal, with all that it started, also when that came first', () => {
    const seen = played('aborted') as Record<string, unknown>;
    expect(seen).toMatchObject({ end: killed('stopped'), atGone: [], after: [] });
    expect(seen['count']).toBeGreaterThanOrEqual(3);
    expect(seen['never']).toMatchObject({ code: 'uncertain' });
  });

  it('is ended by its time limit, with all that it started', () => {
    const seen = played('timeLimit') as { end: unknown; ms: number; atGone: unknown };
    expect(seen).toMatchObject({ end: killed('timeout'), atGone: [] });
    expect(seen.ms).toBeGreaterThanOrEqual(4_000);
    expect(seen.ms).toBeLessThan(40_000);
  });

  it('that could not be asked for is unreached, and counts no more', () => {
    expect(played('unreached')).toStrictEqual({ end: { kind: 'unreached' }, full: false });
  });

  it('that cannot be executed says the step and the error', () => {
    expect(played('failedExec')).toStrictEqual({
      ends: [
        { kind: 'failed', step: 'exec', errno: 'ENOENT' },
        { kind: 'failed', step: 'directory', errno: 'ENOENT' },
        { kind: 'failed', step: 'space', errno: 'ENOENT' },
      ],
    });
  });
});
