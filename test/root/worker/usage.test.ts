import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { inOwnProcesses, nativeProgram, ownFolder, runToEnd, workerCommand } from './support/as-worker.ts';

let folder: ReturnType<typeof ownFolder>;

beforeEach(() => {
  folder = ownFolder();
});

afterEach(() => folder.remove());

/** Plays a scenario of the script against the real native program, and returns what it saw. */
const played = (scenario: string): unknown => {
  const command = inOwnProcesses(workerCommand('usage-script', [scenario, folder.path, nativeProgram]));
  const { status, stdout, stderr } = runToEnd(command);
  expect({ status, stderr }).toStrictEqual({ status: 0, stderr: expect.any(String) });
  return JSON.parse(stdout);
};

describe('a count that the user’s own run kills', () => {
  it('once is started once more: who asked sees nothing of it', () => {
    expect(played('killedOnce')).toStrictEqual({ before: 4000, answers: [4000], exitCode: 0, after: 4000, left: 0 });
  });

  it('again and again is given up, never taken for something else', () => {
    const seen = played('killedAlways') as { answers: unknown[] };
    expect(seen).toMatchObject({ before: 4000, exitCode: 0, after: 4000, left: 0 });
    for (const answer of seen.answers) expect([4000, 'usage_failed']).toContain(answer);
  });
});
