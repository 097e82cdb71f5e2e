import { describe, expect, it, vi } from 'vitest';
import { Refusal } from '../../../../protocol/errors.ts';
import type { GitSession } from '../../../../worker/git/session.ts';
import type { RunExit } from '../../../../worker/runs/messages.ts';
import { command, setClock, setup, space } from './session-under-test.ts';
import { refusedWith, runExit, type Scripted } from './support.ts';

describe('a workflow', () => {
  it('holds the lock and one place from before its first step until all is cleared away', async () => {
    const { run, runs, isFree, helpers, context, expectClosed } = setup();
    helpers.answer = ({ verb }) => {
      if (verb === 'clear') expect([isFree(), runs.full]).toStrictEqual([false, true]);
      return {};
    };
    const { result, value } = await run(async (session) => {
      expect([isFree(), runs.full]).toStrictEqual([false, true]);
      await session.onNetwork(command);
      await session.local(command);
      return 'value';
    });
    expect(value).toBe('value');
    expect(result).toMatchObject({ ok: true, exitCode: 0, truncated: false, timedOut: false });
    expect(runs.places[0]).toBeDefined();
    expect(new Set(runs.places).size).toBe(1);
    for (const signal of runs.signals) expect(signal).toBe(context.signal);
    expectClosed();
  });

  it('is busy or overloaded before anything is done, and then keeps nothing', async () => {
    const busy = setup();
    busy.locks.acquire(7, { action: 'exec', operationId: 'other' });
    expect(await refusedWith(busy.run(async () => undefined))).toBe('busy');
    expect([busy.runs.taken, busy.helpers.calls.length]).toStrictEqual([0, 0]);
    const overloaded = setup();
    overloaded.runs.take();
    expect(await refusedWith(overloaded.run(async () => undefined))).toBe('overloaded');
    expect([overloaded.isFree(), overloaded.helpers.calls.length]).toStrictEqual([true, 0]);
  });

  it('gives the token to commands on the network, and to no other', async () => {
    const { run, runs } = setup();
    await run(async (session) => {
      await session.onNetwork(command);
      await session.local(command);
      await session.local(command, 'file');
      await session.ask(command);
    });
    const seen = runs.plans.map(({ environment }) => [
      environment.includes('TOKEN=secret'),
      environment.find((entry) => entry.startsWith('GIT_ALLOW_PROTOCOL=')),
    ]);
    expect(seen).toStrictEqual([
      [true, 'GIT_ALLOW_PROTOCOL=https'],
      [false, 'GIT_ALLOW_PROTOCOL='],
      [false, 'GIT_ALLOW_PROTOCOL=file'],
      [false, 'GIT_ALLOW_PROTOCOL='],
    ]);
    for (const { args } of runs.plans) expect(args).toStrictEqual(['/opt/git', 'status']);
  });

  it('starts each command as the user’s run, with the operator’s limits and a grace', async () => {
    setClock();
    const { run, runs } = setup({ RUNNER_EXEC_TIMEOUT_SEC: '9', RUNNER_MAX_OUTPUT_BYTES: '5' });
    await run((session) => session.local(command));
    const { environment, ...plan } = runs.plans[0] ?? {};
    expect(environment?.length).toBeGreaterThan(20);
    expect(plan).toStrictEqual({
      uid: 20_007,
      program: '/opt/git',
      space,
      directory: 'repos/x',
      args: ['/opt/git', 'status'],
      timeLimitMs: 9_000,
      outputBytesMax: 5,
      processesMax: 144,
      fileBytesMax: 1_073_741_824,
      addressBytesMax: 0,
      termGraceMs: 300,
      streams: 'empty',
    });
  });
});

describe('a workflow that is not put on record', () => {
  it('has nothing to clear away, and the space is as it was counted', async () => {
    const { look, helpers, quota, begun, expectGivenBack } = setup();
    const steps = async (session: GitSession): Promise<never> => {
      await session.help({ verb: 'repository', project: 'x', worktree: null });
      throw new Refusal('no_project');
    };
    expect(await refusedWith(look(steps))).toBe('no_project');
    expect([helpers.order, helpers.discarded, quota.asked, begun]).toStrictEqual([['repository'], [], [], []]);
    expectGivenBack();
  });

  it('since it could not be, has neither', async () => {
    const { run, helpers, quota, context, expectGivenBack } = setup();
    const begin = vi.spyOn(context, 'begin').mockRejectedValue(new Refusal('ledger_unavailable'));
    expect(await refusedWith(run(async () => undefined))).toBe('ledger_unavailable');
    expect(begin).toHaveBeenCalledOnce();
    expect([helpers.order, quota.asked]).toStrictEqual([[], []]);
    expectGivenBack();
  });
});

describe('what git is asked', () => {
  const exits = (exitCode: number | undefined, stdout = '', change: Partial<RunExit> = {}): Scripted => ({
    stdout,
    end: { kind: 'exit', exit: runExit({ exitCode, ...change }) },
  });
  const ask = async (says: Scripted) => {
    const { run, runs, expectClosed } = setup();
    runs.script = () => says;
    const { result, value } = await run(async (session) => [await session.ask(command)]);
    expectClosed();
    return { ...result, value };
  };

  it.each([
    ['all of it but its line break', 'refs/heads/x\n', 'refs/heads/x'],
    ['all of it when it has none', 'refs/heads/x', 'refs/heads/x'],
    ['one line break of several', 'a\n\n', 'a\n'],
    ['no other white space', ' a\u00a0\n', ' a\u00a0'],
    ['not a carriage return', 'a\r\n', 'a\r'],
    ['no line break within', 'a\nb\0', 'a\nb\0'],
    ['an empty answer', '', ''],
  ])('is answered: %s', async (_what, stdout, answer) => {
    expect(await ask(exits(0, stdout))).toMatchObject({ ok: true, exitCode: 0, value: [answer] });
  });

  it('has no answer at status 1, whatever was said', async () => {
    for (const stdout of ['', 'half'])
      expect(await ask(exits(1, stdout))).toMatchObject({ ok: true, exitCode: 0, value: [undefined] });
  });

  it.each([2, 127, 128, 129, 255])('ends the workflow at status %i', async (exitCode) => {
    expect(await ask(exits(exitCode, 'refs/heads/x\n'))).toMatchObject({ ok: false, exitCode, value: undefined });
  });

  it('ends the workflow when a signal ended it', async () => {
    const killed = exits(undefined, 'x', { signal: 'SIGKILL' });
    expect(await ask(killed)).toMatchObject({ ok: false, exitCode: -1, value: undefined });
  });

  it('ends the workflow when the answer was cut, with a code that is none', async () => {
    const cut = exits(0, 'refs/heads/main', { stdoutCut: true });
    expect(await ask(cut)).toMatchObject({ ok: false, exitCode: 1, value: undefined });
  });

  it('may fail where it is only attempted, however it does', async () => {
    for (const exitCode of [0, 1, 128]) {
      const { run, runs } = setup();
      runs.script = () => exits(exitCode);
      const { result, value } = await run(async (session) => [await session.attempt(command)]);
      expect([result.ok, result.exitCode, value]).toStrictEqual([true, 0, [undefined]]);
    }
  });
});

it('what all commands say is told within one limit', async () => {
  const { run, runs, told } = setup({ RUNNER_MAX_OUTPUT_BYTES: '8' });
  runs.script = () => ({ stdout: '12345', stderr: 'abc' });
  const { result } = await run(async (session) => {
    await session.onNetwork(command);
    await session.ask(command);
    await session.local(command);
  });
  expect([told('stdout'), told('stderr'), result.truncated]).toStrictEqual(['12345123', 'abcabcab', true]);
});
