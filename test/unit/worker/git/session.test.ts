import { describe, expect, it } from 'vitest';
import { command, setClock, setup, space } from './session-under-test.ts';
import { refusedWith } from './support.ts';

describe('a workflow', () => {
  it('holds the lock and one place from before its first step until all is cleared away', async () => {
    const { run, runs, isFree, helpers, context, expectClosed } = setup();
    helpers.answer = ({ verb }) => {
      if (verb === 'clear') expect([isFree(), runs.full]).toStrictEqual([false, true]);
      return {};
    };
    const { result, value } = await run(async (session) => {
      expect([isFree(), runs.full]).toStrictEqual([false, true]);
      await session.begin();
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
