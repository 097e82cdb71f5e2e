import { describe, expect, it } from 'vitest';
import type { FsCall } from '../../../helper/contract/fs.ts';
import { Refusal } from '../../../protocol/errors.ts';
import { readConfig } from '../../../worker/config.ts';
import type { HandlerContext } from '../../../worker/handlers.ts';
import { UserLocks } from '../../../worker/locks.ts';
import { fileHandlers } from '../../../worker/operations/files.ts';
import { resetHandler } from '../../../worker/operations/workspace-reset.ts';
import { Outputs } from '../../../worker/outputs.ts';
import { Spaces } from '../../../worker/spaces.ts';
import { eventually } from '../../support/wait.ts';
import { StandInQuota } from './support/quota.ts';

/** Knows where the spaces are; makes none. */
class StandInSpaces extends Spaces {
  refusal: Refusal | undefined;
  readonly ensured: number[] = [];

  override ensure(user: number): string {
    if (this.refusal) throw this.refusal;
    this.ensured.push(user);
    return this.pathOf(user);
  }
}

const setup = (settings: Readonly<Record<string, string>> = {}) => {
  const asked: { user: number; call: FsCall; deadlineMs: number }[] = [];
  const discarded: number[] = [];
  /** What came after what. */
  const steps: string[] = [];
  const state: { answer: () => Promise<unknown>; refusedBegin?: Refusal } = { answer: async () => ({}) };
  const helpers = {
    call: (user: number, call: FsCall, { deadlineMs }: { deadlineMs: number }) => {
      asked.push({ user, call, deadlineMs });
      steps.push(call.verb);
      return state.answer();
    },
    discard: (user: number) => void discarded.push(user),
  };
  const config = readConfig({ RUNNER_WORK_DIR: '/w', ...settings });
  const spaces = new StandInSpaces('/w');
  const locks = new UserLocks();
  const quota = new StandInQuota(spaces);
  const parts = { config, spaces, quota, locks, helpers };
  const handlers = { ...fileHandlers(parts), 'workspace.reset': resetHandler(parts) };
  const context: HandlerContext = {
    operationId: 'the-operation',
    signal: new AbortController().signal,
    outputs: new Outputs({ credit: () => 0, send: () => undefined }, []),
    room: async () => undefined,
    begin: async () => {
      await new Promise(setImmediate);
      if (state.refusedBegin) throw state.refusedBegin;
      steps.push('begun');
    },
    note: () => undefined,
  };
  return { handlers, context, asked, discarded, steps, state, spaces, quota, locks };
};

const codeOf = async (answer: Promise<unknown>): Promise<string> => {
  const error: unknown = await answer.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof Refusal)) throw new Error(`not refused: ${String(error)}`);
  return error.code;
};

const entry = { name: 'a', kind: 'file', size: 1, modified: '2026-01-02T03:04:05.678Z' };
const text = { size: 1, text: true, content: 'x', reason: null };

describe('what the helper is asked', () => {
  it('carries the limits, and the path as it came', async () => {
    const { handlers, context, asked, state, spaces } = setup({
      RUNNER_FILE_TIMEOUT_SEC: '6',
      RUNNER_RESET_TIMEOUT_SEC: '7',
    });
    state.answer = async () => ({ entries: [entry], truncated: true });
    expect(await handlers['files.list']({ user: 7, path: 'a/b' }, context)).toStrictEqual({
      path: 'a/b',
      entries: [entry],
      truncated: true,
    });
    state.answer = async () => text;
    expect(await handlers['files.read']({ user: 7 }, context)).toStrictEqual({ path: '', ...text });
    state.answer = async () => ({ size: 2 });
    expect(await handlers['files.write']({ user: 7, path: 'f', content: 'ü' }, context)).toStrictEqual({
      written: true,
      size: 2,
    });
    state.answer = async () => ({});
    expect(await handlers['files.delete']({ user: 7, path: 'f' }, context)).toStrictEqual({ deleted: true });
    expect(await handlers['workspace.reset']({ user: 7 }, context)).toStrictEqual({ reset: true });
    expect(asked).toStrictEqual([
      { user: 7, call: { verb: 'list', path: 'a/b', entriesMax: 2_000 }, deadlineMs: 6_000 },
      { user: 7, call: { verb: 'read', path: '', bytesMax: 262_144, probeBytes: 8_192 }, deadlineMs: 6_000 },
      { user: 7, call: { verb: 'write', path: 'f', content: 'ü' }, deadlineMs: 6_000 },
      { user: 7, call: { verb: 'delete', path: 'f' }, deadlineMs: 6_000 },
      { user: 7, call: { verb: 'reset' }, deadlineMs: 7_000 },
    ]);
    expect(spaces.ensured).toStrictEqual([7, 7, 7, 7, 7]);
  });

  it('is nothing while the space is broken, or a content is too large', async () => {
    const { handlers, context, asked, spaces } = setup({ RUNNER_MAX_WRITE_BYTES: '3' });
    expect(await codeOf(handlers['files.write']({ user: 7, path: 'f', content: 'üü' }, context))).toBe('bad_request');
    spaces.refusal = new Refusal('workspace_broken');
    expect(await codeOf(handlers['files.list']({ user: 7 }, context))).toBe('workspace_broken');
    expect(await codeOf(handlers['files.read']({ user: 7 }, context))).toBe('workspace_broken');
    expect(await codeOf(handlers['files.write']({ user: 7, content: '' }, context))).toBe('workspace_broken');
    expect(await codeOf(handlers['files.delete']({ user: 7 }, context))).toBe('workspace_broken');
    expect(await codeOf(handlers['workspace.reset']({ user: 7 }, context))).toBe('workspace_broken');
    expect(asked).toStrictEqual([]);
  });

  it('has no other limit than the body’s where that is 0', async () => {
    const { handlers, context, state } = setup({ RUNNER_MAX_WRITE_BYTES: '0' });
    state.answer = async () => ({ size: 300_000 });
    const params = { user: 7, path: 'f', content: 'x'.repeat(300_000) };
    expect(await handlers['files.write'](params, context)).toStrictEqual({ written: true, size: 300_000 });
  });
});

describe('the lock of the user', () => {
  it('is not needed to look, and refuses every change at once', async () => {
    const { handlers, context, asked, state, locks } = setup();
    const release = locks.acquire(7, { action: 'exec', operationId: 'other' });
    state.answer = async () => text;
    await handlers['files.read']({ user: 7 }, context);
    expect(await codeOf(handlers['files.write']({ user: 7, content: '' }, context))).toBe('busy');
    expect(await codeOf(handlers['files.delete']({ user: 7 }, context))).toBe('busy');
    expect(await codeOf(handlers['workspace.reset']({ user: 7 }, context))).toBe('busy');
    expect(asked).toHaveLength(1);
    release();
    state.answer = async () => ({ size: 0 });
    await handlers['files.write']({ user: 7, content: '' }, context);
  });

  it('is held until the helper has answered, and given back however that is', async () => {
    const { handlers, context, asked, state } = setup();
    const { promise, reject } = Promise.withResolvers<unknown>();
    state.answer = () => promise;
    const first = codeOf(handlers['files.delete']({ user: 7, path: 'f' }, context));
    expect(await codeOf(handlers['files.delete']({ user: 7, path: 'f' }, context))).toBe('busy');
    await eventually('the call', () => asked.length === 1);
    reject(new Refusal('uncertain'));
    expect(await first).toBe('uncertain');
    state.answer = async () => ({});
    await handlers['files.delete']({ user: 7, path: 'f' }, context);
  });
});

describe('what is not an answer', () => {
  const odd: readonly unknown[] = [
    undefined,
    null,
    'x',
    [],
    { more: 1 },
    { size: -1 },
    { size: 1, more: 2 },
    { size: 1.5 },
  ];

  it('is no success: failed for a read, uncertain for a change', async () => {
    const { handlers, context, state } = setup();
    for (const answer of odd) {
      state.answer = async () => answer;
      expect(await codeOf(handlers['files.list']({ user: 7 }, context))).toBe('file_failed');
      expect(await codeOf(handlers['files.read']({ user: 7 }, context))).toBe('file_failed');
      expect(await codeOf(handlers['files.write']({ user: 7, content: '' }, context))).toBe('uncertain');
      expect(await codeOf(handlers['files.delete']({ user: 7 }, context))).toBe('uncertain');
      expect(await codeOf(handlers['workspace.reset']({ user: 7 }, context))).toBe('uncertain');
    }
  });

  it.each([
    ['more entries than were asked for', { entries: new Array(2_001).fill(entry), truncated: true }],
    ['an entry of another kind', { entries: [{ ...entry, kind: 'door' }], truncated: false }],
    ['an entry with its target', { entries: [{ ...entry, target: '/x' }], truncated: false }],
    ['a name that is too long', { entries: [{ ...entry, name: 'x'.repeat(256) }], truncated: false }],
    ['a time that is none', { entries: [{ ...entry, modified: 'now' }], truncated: false }],
  ])('a list with %s', async (_name, answer) => {
    const { handlers, context, state } = setup();
    state.answer = async () => answer;
    expect(await codeOf(handlers['files.list']({ user: 7 }, context))).toBe('file_failed');
  });

  it.each([
    ['text without content', { ...text, content: null }],
    ['text with a reason', { ...text, reason: 'binary' }],
    ['content that is none', { ...text, text: false }],
    ['too much content', { ...text, content: 'x'.repeat(262_145) }],
  ])('a read with %s', async (_name, answer) => {
    const { handlers, context, state } = setup();
    state.answer = async () => answer;
    expect(await codeOf(handlers['files.read']({ user: 7 }, context))).toBe('file_failed');
  });

  it('a write of another size', async () => {
    const { handlers, context, state } = setup();
    state.answer = async () => ({ size: 1 });
    expect(await codeOf(handlers['files.write']({ user: 7, content: 'ü' }, context))).toBe('uncertain');
  });
});

describe('a change', () => {
  const changes = (handlers: ReturnType<typeof setup>['handlers'], context: HandlerContext) =>
    [
      ['write', () => handlers['files.write']({ user: 7, path: 'f', content: '' }, context)],
      ['delete', () => handlers['files.delete']({ user: 7, path: 'f' }, context)],
      ['reset', () => handlers['workspace.reset']({ user: 7 }, context)],
    ] as const;

  it('is on record before the helper is asked, once, and only then', async () => {
    const { handlers, context, steps, state, locks } = setup();
    for (const [verb, ask] of changes(handlers, context)) {
      state.answer = async () => (verb === 'write' ? { size: 0 } : {});
      steps.length = 0;
      await ask();
      expect(steps).toStrictEqual(['begun', verb]);
    }
    steps.length = 0;
    state.refusedBegin = new Refusal('ledger_unavailable');
    for (const [, ask] of changes(handlers, context)) expect(await codeOf(ask())).toBe('ledger_unavailable');
    delete state.refusedBegin;
    locks.acquire(7, { action: 'exec', operationId: 'other' });
    for (const [, ask] of changes(handlers, context)) expect(await codeOf(ask())).toBe('busy');
    expect(steps).toStrictEqual([]);
  });

  it('of a full space is refused where it could grow, before the lock; however one ended, the space is counted anew', async () => {
    const { handlers, context, asked, quota, state, locks } = setup();
    quota.refusal = new Refusal('disk_quota');
    const release = locks.acquire(7, { action: 'exec', operationId: 'other' });
    expect(await codeOf(handlers['files.write']({ user: 7, path: 'f', content: '' }, context))).toBe('disk_quota');
    release();
    expect(asked).toStrictEqual([]);
    expect(quota.asked).toStrictEqual(['check 7']);
    await handlers['files.delete']({ user: 7, path: 'f' }, context);
    await handlers['workspace.reset']({ user: 7 }, context);
    expect(quota.asked).toStrictEqual(['check 7', 'changed 7', 'changed 7']);
    quota.refusal = undefined;
    for (const [, ask] of changes(handlers, context)) {
      quota.asked.length = 0;
      state.answer = () => Promise.reject(new Refusal('uncertain'));
      expect(await codeOf(ask())).toBe('uncertain');
      expect(quota.asked.at(-1)).toBe('changed 7');
    }
  });
});

describe('a reset', () => {
  it('discards the user’s helpers before another change can begin, however it ends', async () => {
    const { handlers, context, state, discarded, locks } = setup();
    await handlers['workspace.reset']({ user: 7 }, context);
    for (const code of ['reset_failed', 'uncertain'] as const) {
      state.answer = () => Promise.reject(new Refusal(code));
      expect(await codeOf(handlers['workspace.reset']({ user: 7 }, context))).toBe(code);
    }
    expect(discarded).toStrictEqual([7, 7, 7]);
    locks.acquire(7, { action: 'exec', operationId: 'other' });
    expect(await codeOf(handlers['workspace.reset']({ user: 7 }, context))).toBe('busy');
    expect(discarded).toHaveLength(3);
  });
});
