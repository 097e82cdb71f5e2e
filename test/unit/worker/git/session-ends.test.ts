import { describe, expect, it } from 'vitest';
import { type ErrorCode, Refusal } from '../../../../protocol/errors.ts';
import type { GitSession } from '../../../../worker/git/session.ts';
import { command, setClock, settled, setup } from './session-under-test.ts';
import { refusedWith, runExit } from './support.ts';

describe('the time limit', () => {
  it('is one for all commands and calls', async () => {
    const clock = setClock();
    const { run, runs, helpers } = setup({ RUNNER_EXEC_TIMEOUT_SEC: '10', RUNNER_FILE_TIMEOUT_SEC: '4' });
    await run(async (session) => {
      await session.local(command);
      clock.now += 4_000;
      await session.help({ verb: 'scratch', clean: null });
      clock.now += 5_999;
      await session.ask(command);
      await session.help({ verb: 'scratch', clean: null });
    });
    expect(runs.plans.map(({ timeLimitMs }) => timeLimitMs)).toStrictEqual([10_000, 1]);
    // A call has no more than that of calls of its kind, and than what is left. Clearing away has its own.
    expect(helpers.calls.map(({ deadlineMs }) => deadlineMs)).toStrictEqual([4_000, 1, 4_000]);
  });

  it.each(['onNetwork', 'local', 'ask', 'help'] as const)(
    'that is over before %s starts nothing more',
    async (step) => {
      const clock = setClock();
      const { run, runs, helpers, facts, expectClosed } = setup({ RUNNER_EXEC_TIMEOUT_SEC: '10' });
      const { result, value } = await run(async (session) => {
        clock.now += 10_000;
        if (step === 'help') await session.help({ verb: 'scratch', clean: null });
        else await session[step](command);
        return 'reached';
      });
      expect(value).toBeUndefined();
      expect(result).toStrictEqual({ ok: false, exitCode: -1, truncated: false, timedOut: true, durationMs: 10_000 });
      expect([runs.plans.length, helpers.calls.length]).toStrictEqual([0, 1]);
      expect(facts).toStrictEqual([{ exit: -1, status: 'timeout' }]);
      expectClosed();
    },
  );

  it.each(['onNetwork', 'local', 'ask'] as const)('that ends a command of %s ends it all', async (step) => {
    const { run, runs, expectClosed } = setup();
    runs.script = () => ({ end: { kind: 'exit', exit: runExit({ reason: 'timeout', exitCode: undefined }) } });
    const { result, value } = await run(async (session) => {
      await session[step](command);
      return 'reached';
    });
    expect(value).toBeUndefined();
    expect(result).toMatchObject({ ok: false, exitCode: -1, timedOut: true });
    expectClosed();
  });
});

describe('a command that fails', () => {
  it.each(['onNetwork', 'local'] as const)('of %s ends the workflow with its code', async (step) => {
    const { run, runs, facts, told, expectClosed } = setup();
    runs.script = () => ({ end: { kind: 'exit', exit: runExit({ exitCode: 128 }) }, stderr: 'fatal: no\n' });
    const { result, value } = await run(async (session) => {
      await session[step](command);
      return 'reached';
    });
    expect(value).toBeUndefined();
    expect(result).toMatchObject({ ok: false, exitCode: 128, timedOut: false });
    expect(facts).toStrictEqual([{ exit: 128 }]);
    expect(told('stderr')).toBe('fatal: no\n');
    expectClosed();
  });

  it('is made up of a success that is not there, with a code that is none', async () => {
    const { run } = setup();
    const { result } = await run(async (session) => {
      await session.local(command);
      return session.fail();
    });
    expect(result).toMatchObject({ ok: false, exitCode: 1 });
  });

  it.each([
    ['a folder that is not there', { kind: 'failed', step: 'directory', errno: 'ENOENT' }, 'file_failed'],
    ['a folder that leads outside', { kind: 'failed', step: 'directory', errno: 'EXDEV' }, 'outside_workspace'],
    ['no git', { kind: 'failed', step: 'exec', errno: 'ENOENT' }, 'exec_failed'],
    ['limits that can’t be set', { kind: 'failed', step: 'limits', errno: 'EPERM' }, 'limit_failed'],
    ['no spawner', { kind: 'unreached' }, 'worker_unavailable'],
    ['nobody who waits', { kind: 'exit', exit: runExit({ reason: 'stopped' }) }, 'uncertain'],
    ['a spawner that died', { kind: 'exit', exit: runExit({ reason: 'spawnerLost' }) }, 'uncertain'],
  ] as const)('since there is %s, is refused', async (_what, end, code) => {
    const { run, runs, expectClosed } = setup();
    runs.script = () => ({ end });
    expect(await refusedWith(run((session) => session.local(command)))).toBe(code);
    expectClosed();
  });

  it.each([3, undefined])('and resists its end is on record with its exit, if it had one: %s', async (exitCode) => {
    const { run, runs, facts } = setup();
    runs.script = () => ({ end: { kind: 'incomplete', exit: runExit({ exitCode }) } });
    expect(await refusedWith(run((session) => session.local(command)))).toBe('kill_incomplete');
    expect(facts).toStrictEqual(exitCode === undefined ? [] : [{ exit: exitCode }]);
  });
});

describe('a refusal', () => {
  /** By hand: what is said to have had no effect. */
  const nothingDone = [
    ...['bad_target', 'not_found', 'outside_workspace', 'exists', 'no_worktree', 'host_not_allowed'],
    ...['overloaded', 'worker_unavailable', 'draining', 'exec_failed', 'limit_failed', 'workspace_broken'],
    ...['disk_quota', 'busy', 'write_failed'],
  ] as readonly ErrorCode[];
  const mayHave = ['kill_incomplete', 'file_failed', 'reset_failed', 'internal', 'uncertain'] as const;

  it.each([...nothingDone, ...mayHave])('%s is told as it is while nothing has changed', async (code) => {
    const { run, expectClosed } = setup();
    expect(await refusedWith(run(() => Promise.reject(new Refusal(code))))).toBe(code);
    expectClosed();
  });

  const changed = (parts: ReturnType<typeof setup>, act: (session: GitSession) => Promise<unknown>) =>
    parts.run(async (session) => {
      session.changing();
      await act(session);
    });

  it.each(nothingDone)('%s says after a change that nobody knows', async (code) => {
    const parts = setup();
    const refused = changed(parts, () => Promise.reject(new Refusal(code, { step: 'exec', errno: 'ENOENT' })));
    await expect(refused).rejects.toMatchObject({ code: 'uncertain', details: undefined });
    parts.expectClosed();
  });

  it.each(mayHave)('%s is told as it is after a change too', async (code) => {
    expect(await refusedWith(changed(setup(), () => Promise.reject(new Refusal(code))))).toBe(code);
  });

  it.each([
    ['that was never reached', { kind: 'unreached' }, 'uncertain'],
    ['that could not be started', { kind: 'failed', step: 'exec', errno: 'ENOENT' }, 'uncertain'],
    ['whose folder is gone', { kind: 'failed', step: 'directory', errno: 'ENOENT' }, 'file_failed'],
    ['that resists', { kind: 'incomplete', exit: runExit() }, 'kill_incomplete'],
  ] as const)('for a command %s after a change', async (_what, end, code) => {
    const parts = setup();
    parts.runs.script = () => ({ end });
    expect(await refusedWith(changed(parts, (session) => session.local(command)))).toBe(code);
    parts.expectClosed();
  });

  it('is none: a command that fails after a change is a result, and a bug a bug', async () => {
    const parts = setup();
    parts.runs.script = () => ({ end: { kind: 'exit', exit: runExit({ exitCode: 128 }) } });
    const { result } = await changed(parts, (session) => session.local(command));
    expect(result).toMatchObject({ ok: false, exitCode: 128 });
    await expect(changed(setup(), () => Promise.reject(new TypeError('a bug')))).rejects.toThrow(TypeError);
  });
});

describe('the lock', () => {
  it.each([
    ['resists', { kind: 'incomplete', exit: runExit() }, 'kill_incomplete'],
    ['is lost', { kind: 'lost' }, 'uncertain'],
  ] as const)('is kept for a command that %s until it is gone', async (_how, end, code) => {
    const { run, runs, helpers, isFree, expectClosed } = setup();
    const gone = Promise.withResolvers<void>();
    runs.script = () => ({ end, gone: gone.promise });
    const refused = refusedWith(run((session) => session.local(command)));
    if (end.kind === 'incomplete') expect(await refused).toBe(code);
    await settled();
    expect([isFree(), runs.full, helpers.calls.length]).toStrictEqual([false, true, 0]);
    gone.resolve();
    expect(await refused).toBe(code);
    await settled();
    expectClosed();
  });

  it('is kept while a command that has exited is not gone, and the next one waits for that', async () => {
    const { run, runs, isFree } = setup();
    const gone = Promise.withResolvers<void>();
    runs.script = () => ({ gone: gone.promise });
    const done = run(async (session) => {
      await session.local(command);
      await session.local(command);
    });
    await settled();
    expect([runs.plans.length, isFree()]).toStrictEqual([1, false]);
    gone.resolve();
    await done;
    expect([runs.plans.length, isFree()]).toStrictEqual([2, true]);
  });
});

describe('what is left', () => {
  it('is cleared away also when nobody waits any more, and when that fails too', async () => {
    const { run, helpers, stopping, expectClosed } = setup();
    helpers.answer = () => {
      throw new Refusal('file_failed');
    };
    const refused = refusedWith(
      run(async (session) => {
        stopping.abort('link_lost');
        await session.help({ verb: 'scratch', clean: null });
      }),
    );
    expect(await refused).toBe('uncertain');
    expect(helpers.calls.map(({ call, aborted }) => [call.verb, aborted])).toStrictEqual([
      ['scratch', true],
      ['clear', false],
    ]);
    expectClosed();
  });

  it('is cleared away after a refusal, and after a bug', async () => {
    const refused = setup();
    const steps = async (): Promise<never> => {
      throw new Refusal('exists');
    };
    expect(await refusedWith(refused.run(steps))).toBe('exists');
    refused.expectClosed();
    const broken = setup();
    await expect(broken.run(() => Promise.reject(new TypeError('a bug')))).rejects.toThrow(TypeError);
    broken.expectClosed();
  });

  it('is never left to a helper that programs of the user’s could have harmed', async () => {
    const { run, helpers } = setup();
    await run(async (session) => {
      await session.local({ ...command, runsPrograms: true });
      await session.help({ verb: 'scratch', clean: null });
      await session.local(command);
      await session.help({ verb: 'scratch', clean: null });
      await session.local({ ...command, runsPrograms: true });
    });
    expect(helpers.order).toStrictEqual(['discard', 'scratch', 'scratch', 'discard', 'clear']);
  });
});
