import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Refusal } from '../../../protocol/errors.ts';
import { encodeEnd, encodeStop, type LaunchPlan } from '../../../worker/runs/plan.ts';
import { type RunHandle, Runs } from '../../../worker/runs/runs.ts';
import { eventually } from '../../support/wait.ts';
import { collectingLog } from './support/collect.ts';
import { StandInSpawner } from './support/stand-in-spawner.ts';
import { readRun, said, saidEnded, saidExit, saidFailed, saidIncomplete, saidOutput } from './support/wire.ts';

const plan: LaunchPlan = {
  uid: 930_001,
  program: '/bin/true',
  space: '/w/u930001',
  directory: '',
  args: ['/bin/true'],
  environment: [],
  timeLimitMs: 2_000,
  outputBytesMax: 10,
  processesMax: 0,
  fileBytesMax: 0,
  addressBytesMax: 0,
  termGraceMs: 500,
  streams: 'empty',
};

let spawner: StandInSpawner;

beforeEach(async () => {
  spawner = await StandInSpawner.open();
});

afterEach(() => {
  vi.useRealTimers();
  spawner.close();
});

const setup = (max = 8) => {
  const { log, lines } = collectingLog();
  const runs = new Runs(spawner, max, log);
  const start = (given: LaunchPlan = plan, signal = new AbortController().signal): Promise<RunHandle> =>
    runs.start(given, () => true, signal);
  return { runs, start, logged: lines };
};

/** Tells whether a promise has settled, without waiting for it. */
const watch = (promise: Promise<unknown>): (() => boolean) => {
  let settled = false;
  void promise.then(() => {
    settled = true;
  });
  return () => settled;
};

/** What was sent and can be read has been read. */
const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
};

/** Where the timers are the test's: the connection with this number has said something. */
const arrived = async (number: number): Promise<void> => {
  const end = performance.now() + 5_000;
  while ((spawner.asked[number]?.received().length ?? 0) <= 8) {
    if (performance.now() > end) throw new Error(`no connection ${number}`);
    await new Promise(setImmediate);
  }
};

const codeOf = async (answer: Promise<unknown>): Promise<string> => {
  const error: unknown = await answer.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof Refusal)) throw new Error(`not refused: ${String(error)}`);
  return error.code;
};

describe('runs', () => {
  it('are asked for by their plan, and gone when the spawner’s side says that they are', async () => {
    const { runs, start } = setup();
    const handle = await start();
    const gone = watch(handle.gone);
    const asked = await spawner.connection(0);
    expect(readRun(asked.received())).toMatchObject({ uid: 930_001, program: '/bin/true' });
    asked.socket.write(saidOutput('stdout', 'x'));
    await settle();
    expect(gone()).toBe(false);
    asked.socket.write(saidExit());
    expect(await handle.outcome).toMatchObject({ kind: 'exit' });
    await handle.gone;
    await runs.idle();
    expect(spawner.asked, 'nothing was lost, so nothing is ended').toHaveLength(1);
  });

  it('are gone, too, when they have not run or were not asked for', async () => {
    const { start } = setup();
    const handle = await start();
    (await spawner.connection(0)).socket.end(saidFailed(17, 2));
    expect(await handle.outcome).toMatchObject({ kind: 'failed', step: 'exec' });
    await handle.gone;
    spawner.close();
    const unreached = await start();
    expect(await unreached.outcome).toStrictEqual({ kind: 'unreached' });
    await unreached.gone;
  });

  it('are bounded in number: one more is refused at once, and nothing is asked', async () => {
    const { runs, start } = setup(1);
    expect(runs.full).toBe(false);
    const handle = await start();
    expect(runs.full).toBe(true);
    expect(await codeOf(start())).toBe('overloaded');
    (await spawner.connection(0)).socket.write(saidExit());
    await handle.gone;
    expect(runs.full).toBe(false);
    expect(spawner.asked).toHaveLength(1);
  });

  it('count against the bound from the moment they are asked for', async () => {
    const { runs, start } = setup(1);
    const first = start();
    expect(runs.full).toBe(true);
    expect(await codeOf(start())).toBe('overloaded');
    await first;
  });

  it('are refused while the spawner is down, and count no more', async () => {
    const { runs, start } = setup(1);
    spawner.down = true;
    expect(await codeOf(start())).toBe('worker_unavailable');
    expect(runs.full).toBe(false);
    await runs.idle();
    expect(spawner.asked).toHaveLength(0);
  });

  it('with a plan that is too large are refused before anything', async () => {
    const { runs, start } = setup(1);
    const large = { ...plan, args: ['x'.repeat(5_000_000)] };
    const error: unknown = await start(large).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'exec_failed', details: { step: 'exec', errno: 'E2BIG' } });
    expect(runs.full).toBe(false);
    expect(spawner.asked).toHaveLength(0);
  });

  it('are idle only when the last one is gone', async () => {
    const { runs, start } = setup();
    const handles = [await start(), await start()];
    const idle = watch(runs.idle());
    (await spawner.connection(0)).socket.write(saidExit());
    await Promise.race(handles.map(({ gone }) => gone));
    await settle();
    expect(idle()).toBe(false);
    (await spawner.connection(1)).socket.write(saidExit());
    await eventually('idle', idle);
  });
});

describe('a run that nobody waits for', () => {
  it('is stopped by its signal', async () => {
    const stop = new AbortController();
    const handle = await setup().start(plan, stop.signal);
    const asked = await spawner.connection(0);
    const before = asked.received().length;
    stop.abort('cancelled');
    await eventually('the stop', () => asked.received().subarray(before).equals(encodeStop()));
    asked.socket.write(saidExit({ reason: 3, flags: 2, signal: 9 }));
    expect(await handle.outcome).toMatchObject({ exit: { reason: 'stopped' } });
    await handle.gone;
  });

  it('is not begun when the signal came first', async () => {
    const { runs, start } = setup(1);
    await expect(start(plan, AbortSignal.abort('cancelled'))).rejects.toMatchObject({ code: 'uncertain' });
    await settle();
    expect(runs.full, 'its place is free again').toBe(false);
  });
});

describe('a run that resists', () => {
  it('is answered as incomplete, and gone only at its end, however long that takes', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const { runs, start } = setup();
    const handle = await start();
    await arrived(0);
    spawner.asked[0]?.socket.write(saidIncomplete());
    expect(await handle.outcome).toMatchObject({ kind: 'incomplete' });
    const gone = watch(handle.gone);
    vi.advanceTimersByTime(3_600_000);
    await settle();
    expect(gone()).toBe(false);
    expect(spawner.asked, 'its supervisor is still believed in').toHaveLength(1);
    spawner.asked[0]?.socket.write(saidExit());
    await handle.gone;
    await runs.idle();
  });
});

describe('a lost run', () => {
  const lose = async (bytes: Buffer): Promise<{ handle: RunHandle; runs: Runs; logged: string[] }> => {
    const { runs, start, logged } = setup();
    const handle = await start();
    (await spawner.connection(0)).socket.end(bytes);
    expect(await handle.outcome).toStrictEqual({ kind: 'lost' });
    return { handle, runs, logged };
  };

  it.each([
    ['says nothing', Buffer.alloc(0)],
    ['says what it may not', said(99)],
  ])('is one whose supervisor %s: all of its user is ended before it counts as gone', async (_name, bytes) => {
    const { handle, runs } = await lose(bytes);
    const gone = watch(handle.gone);
    const ending = await spawner.connection(1);
    expect(ending.received().equals(encodeEnd(930_001))).toBe(true);
    await settle();
    expect(gone()).toBe(false);
    expect(runs.full).toBe(false);
    ending.socket.write(saidEnded());
    await handle.gone;
    await runs.idle();
  });

  it('is ended again and again until it is', async () => {
    const { handle, logged } = await lose(Buffer.alloc(0));
    const gone = watch(handle.gone);
    (await spawner.connection(1)).socket.end();
    (await spawner.connection(2)).socket.end(saidFailed(4, 11));
    const third = await spawner.connection(3);
    expect(gone()).toBe(false);
    expect(third.received().equals(encodeEnd(930_001))).toBe(true);
    third.socket.write(saidEnded());
    await handle.gone;
    expect(logged.map((line) => (JSON.parse(line) as { attempt: number }).attempt)).toStrictEqual([1, 2]);
  });

  it('is ended when the spawner is back', async () => {
    spawner.down = false;
    const { start, logged } = setup();
    const handle = await start();
    const first = await spawner.connection(0);
    spawner.down = true;
    first.socket.end();
    await handle.outcome;
    await eventually('a failed attempt', () => logged.length > 0);
    expect(spawner.asked).toHaveLength(1);
    spawner.down = false;
    (await spawner.connection(1)).socket.write(saidEnded());
    await handle.gone;
  });

  it('is left to a spawner that stops, which ends everything anyway', async () => {
    const { runs, start } = setup();
    const handle = await start();
    const asked = await spawner.connection(0);
    runs.stop();
    asked.socket.end();
    await handle.gone;
    expect(spawner.asked).toHaveLength(1);
  });

  it('is one whose supervisor is silent beyond all limits', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const { start } = setup();
    const handle = await start();
    await arrived(0);
    const known = watch(handle.outcome);
    // Its time limit, its grace, and twice the kill limit.
    vi.advanceTimersByTime(2_000 + 500 + 10_000 - 1);
    await settle();
    expect(known()).toBe(false);
    vi.advanceTimersByTime(1);
    expect(await handle.outcome).toStrictEqual({ kind: 'lost' });
    await arrived(1);
    expect(spawner.asked[1]?.received().equals(encodeEnd(930_001))).toBe(true);
    spawner.asked[1]?.socket.write(saidEnded());
    await handle.gone;
  });
});
