import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { inOwnProcesses, nativeProgram, ownFolder, runToEnd, workerCommand } from './support/as-worker.ts';

let folder: ReturnType<typeof ownFolder>;

beforeEach(() => {
  folder = ownFolder();
});

afterEach(() => folder.remove());

/** Plays a scenario of the script with real processes, and returns what it saw. */
const played = (scenario: string): unknown => {
  const command = inOwnProcesses(workerCommand('helpers-script', [scenario, folder.path, nativeProgram]));
  const { status, stdout, stderr } = runToEnd(command);
  expect({ status, stderr }).toStrictEqual({ status: 0, stderr: '' });
  return JSON.parse(stdout);
};

const uid = 937_100;

describe('the pool of fs helpers', () => {
  it('has some stand by as root, makes one a user’s for good, keeps it for a while, and leaves none behind', () => {
    expect(played('life')).toStrictEqual({
      fromStandBy: true,
      ids: uid,
      seen: [[uid, uid, uid, uid]],
      same: true,
      capabilities: '0000000000000000',
      other: true,
      left: 0,
      afterStop: 'draining',
    });
  });

  it('never lets a read wait behind a change, does the calls of one kind in their order, and a workflow’s with one helper', () => {
    const seen = played('lanes') as { stuck: { code: string } };
    expect(seen).toMatchObject({
      stuck: { code: 'uncertain' },
      read: true,
      inOrder: true,
      looksWithChanges: true,
      helpers: 2,
    });
  });

  it('repeats a read once, with another helper, and believes nothing that is not a reply', () => {
    const repeated = ['number', 2, 1, true];
    expect(played('reads')).toStrictEqual({
      once: {
        die: repeated,
        garbage: repeated,
        'not-utf8': repeated,
        'too-long': repeated,
        empty: repeated,
        'too-many': repeated,
        'wrong-id': repeated,
        'more-fields': repeated,
        'unknown-code': repeated,
      },
      always: { code: 'file_failed', asked: 2 },
      hangs: ['number', true],
      stuck: ['file_failed', true, 2],
      look: ['number', 4],
      refused: 'not_found',
      kept: 'number',
      twice: 'number',
    });
  });

  it('never repeats a change, and calls it uncertain only when nothing of its helper is left', () => {
    const uncertain = ['uncertain', 0, 1];
    expect(played('changes')).toStrictEqual({
      seen: { die: uncertain, garbage: uncertain, hang: uncertain },
      replaced: 'number',
      stopped: ['uncertain', 0],
      cut: 'uncertain',
      left: 0,
    });
  });

  it('knows that a change is over when its supervisor was killed, and goes on with another spawner', () => {
    expect(played('lost')).toStrictEqual({ early: false, code: 'uncertain', left: 0, again: 'number' });
  });

  it('bounds how many there are: the longest idle one goes, else a call waits within its time', () => {
    expect(played('bounds')).toStrictEqual({ different: true, kept: true, waited: 'number', overloaded: 'overloaded' });
  });

  it('discards a user’s helpers, those at work after their call', () => {
    expect(played('discarded')).toStrictEqual({ finished: true, next: 'number' });
  });

  it('refuses within its time where no helper can be had', () => {
    expect(played('broken')).toStrictEqual({
      codes: ['workspace_broken', 'workspace_broken'],
      early: ['worker_unavailable', 'worker_unavailable'],
      late: 'overloaded',
    });
  });

  it('carries large calls whole, and sends none that is too large', () => {
    expect(played('large')).toStrictEqual({ same: true, tooLarge: true, next: 'number' });
  });

  it('has files written and read by the program itself', () => {
    expect(played('real')).toStrictEqual({
      written: { size: 5, ms: 0 },
      read: { size: 5, text: true, content: 'hello', reason: null, ms: 0 },
      missing: 'not_found',
      text: 'hello',
    });
  });
});
