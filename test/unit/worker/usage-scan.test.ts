import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Refusal } from '../../../protocol/errors.ts';
import { reportBytesMax } from '../../../worker/usage/report.ts';
import { UsageScans } from '../../../worker/usage/scan.ts';
import { Slots } from '../../../worker/usage/slots.ts';
import { eventually } from '../../support/wait.ts';
import { collectingLog } from './support/collect.ts';
import { StandInSpawner } from './support/stand-in-spawner.ts';
import { readRun, type SaidExit, said, saidExit, saidFailed, saidIncomplete, saidOutput } from './support/wire.ts';

const target = { uid: 930_101, space: '/w/u930101' };
const report = 'usage 1 3 1 4 0 0 0 0 0\0';
const signal = (number: number): SaidExit => ({ flags: 2, signal: number });

let spawner: StandInSpawner;

beforeEach(async () => {
  spawner = await StandInSpawner.open();
});
afterEach(() => {
  vi.useRealTimers();
  spawner.close();
});

const setup = () => {
  const { log, lines } = collectingLog();
  return { scans: new UsageScans(spawner, '/opt/native', log), logged: lines };
};

/** The code that it was refused with, or `counted`. */
const outcome = async (answer: Promise<unknown>): Promise<string> =>
  answer.then(
    () => 'counted',
    (error: unknown) => (error instanceof Refusal ? error.code : `no refusal: ${String(error)}`),
  );

/** Says something to the connection with this number, counted from 0. */
const say = async (number: number, ...messages: readonly Buffer[]): Promise<void> => {
  const { socket } = await spawner.connection(number);
  socket.write(Buffer.concat(messages));
};

/** MSG_BESIDE, by hand: a count must not end as a run of its user does. */
const beside = 7;

describe('a count', () => {
  it('is asked for with the limits of the service, and with no path among its arguments', async () => {
    const answer = setup().scans.scan(target);
    const plan = readRun((await spawner.connection(0)).received(), beside);
    expect(plan).toMatchObject({
      uid: 930_101,
      program: '/opt/native',
      space: '/w/u930101',
      directory: '',
      environment: ['SPACE=/w/u930101'],
      outputBytesMax: BigInt(reportBytesMax),
      processesMax: 0n,
      termGraceMs: 0,
      streams: 'empty',
    });
    const [program, mode, entries, listed, ms] = plan.args;
    expect([program, mode, entries, listed]).toEqual(['/opt/native', 'usage', '500000', '1000']);
    expect(plan.args).toHaveLength(5);
    expect(plan.timeLimitMs).toBeLessThanOrEqual(30_000n);
    expect(Number(ms)).toBe(Number(plan.timeLimitMs) - 1_000);
    await say(0, saidOutput('stdout', report), saidExit());
    expect(await answer).toMatchObject({ bytes: 3, files: 1, dirs: 4, links: 0 });
  });

  it('may say its report in pieces, and something else on the other stream', async () => {
    const answer = setup().scans.scan(target);
    const [first, ...rest] = [...report].map((letter) => saidOutput('stdout', letter));
    // More than is read at once: the rest is read into the place where the first piece was.
    const noise = saidOutput('stderr', 'x'.repeat(65_536));
    await say(0, first ?? noise, noise, noise, ...rest, saidExit());
    expect(await answer).toMatchObject({ bytes: 3 });
  });

  it.each<[string, Buffer[], string, string]>([
    ['that says nothing', [saidExit()], 'usage_failed', 'exited'],
    ['that says no report', [saidOutput('stdout', 'x'), saidExit()], 'usage_failed', 'exited'],
    ['whose report was cut', [saidOutput('stdout', report), saidExit({ flags: 5 })], 'usage_failed', 'exited'],
    [
      'that met something unreadable',
      [saidOutput('stdout', report), saidExit({ code: 2 })],
      'usage_failed',
      'unreadable',
    ],
    ['that was too deep', [saidExit({ code: 3 })], 'usage_failed', 'too_deep'],
    ['that was too late', [saidExit({ code: 4 })], 'usage_failed', 'too_late'],
    ['that was too large', [saidExit({ code: 5 })], 'usage_failed', 'too_large'],
    ['that was not understood', [saidExit({ code: 64 })], 'usage_failed', 'exited'],
    [
      'whose time was over',
      [saidOutput('stdout', report), saidExit({ reason: 2, ...signal(9) })],
      'usage_failed',
      'SIGKILL',
    ],
    [
      'that resists its end',
      [saidOutput('stdout', report), saidIncomplete({ reason: 2 })],
      'usage_failed',
      'incomplete',
    ],
    ['of a space that is none', [saidFailed(2, 1)], 'workspace_broken', ''],
    ['of a space whose home is none', [saidFailed(13, 20)], 'workspace_broken', ''],
    ['that could not be started', [saidFailed(4, 11)], 'usage_failed', 'failed'],
    ['of a home that lets nobody in', [saidFailed(14, 13)], 'usage_failed', 'failed'],
  ])('%s is refused, and not repeated', async (_name, messages, code, reason) => {
    const { scans, logged } = setup();
    const answer = outcome(scans.scan(target));
    await say(0, ...messages);
    expect(await answer).toBe(code);
    expect(spawner.asked).toHaveLength(1);
    expect(logged.map((line) => JSON.parse(line).reason)).toEqual(reason === '' ? [] : [reason]);
    expect(logged.join()).not.toMatch(/u930101|usage 1/);
  });

  it.each<[string, Buffer[]]>([
    ['killed', [saidExit(signal(9))]],
    ['killed after its report', [saidOutput('stdout', report), saidExit(signal(9))]],
    ['killed at an end of the user’s run', [saidExit({ reason: 3, ...signal(9) })]],
    ['cut off by something that is no message', [said(99)]],
  ])('that was %s is started once more', async (_name, messages) => {
    for (const again of ['counted', 'usage_failed']) {
      const first = spawner.asked.length;
      const answer = outcome(setup().scans.scan(target));
      await say(first, ...messages);
      const second = await spawner.connection(first + 1);
      expect(readRun(second.received(), beside).uid).toBe(930_101);
      await say(first + 1, ...(again === 'counted' ? [saidOutput('stdout', report), saidExit()] : messages));
      expect(await answer).toBe(again);
      expect(spawner.asked).toHaveLength(first + 2);
    }
  });

  it('whose supervisor dies is started once more', async () => {
    const answer = outcome(setup().scans.scan(target));
    (await spawner.connection(0)).socket.destroy();
    await say(1, saidOutput('stdout', report), saidExit());
    expect(await answer).toBe('counted');
  });

  it('without a spawner is refused as such', async () => {
    spawner.down = true;
    expect(await outcome(setup().scans.scan(target))).toBe('worker_unavailable');
    expect(spawner.asked).toHaveLength(0);
  });
});

describe('counts', () => {
  it('are four at once; the others wait for their turn, and none more when 128 wait', async () => {
    const { scans } = setup();
    expect(scans.hasRoom).toBe(true);
    const answers = Array.from({ length: 132 }, () => outcome(scans.scan(target)));
    await spawner.connection(3);
    expect(scans.hasRoom).toBe(false);
    expect(await outcome(scans.scan(target))).toBe('overloaded');
    for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
    expect(spawner.asked).toHaveLength(4);
    for (let number = 0; number < 132; number += 1) {
      await say(number, saidOutput('stdout', report), saidExit());
    }
    expect(new Set(await Promise.all(answers))).toEqual(new Set(['counted']));
    expect(spawner.asked).toHaveLength(132);
    expect(scans.hasRoom).toBe(true);
  });

  it('that a user stopped leave their turns to others after a while', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const { scans } = setup();
    /** As many have been asked for, and no more. */
    const areAsked = async (count: number): Promise<void> => {
      for (let turn = 0; turn < 200 && spawner.asked.length < count; turn += 1) await new Promise(setImmediate);
      for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
      expect(spawner.asked).toHaveLength(count);
    };
    for (let number = 0; number < 80; number += 1) void outcome(scans.scan(target));
    await areAsked(4);
    await vi.advanceTimersByTimeAsync(2_999);
    await areAsked(4);
    await vi.advanceTimersByTimeAsync(1);
    await areAsked(8);
    for (const { socket } of spawner.asked) socket.write(Buffer.concat([saidOutput('stdout', report), saidExit()]));
    // The first four had none to give back any more.
    await areAsked(12);
  });

  it('that fail give their turns back', async () => {
    const { scans } = setup();
    spawner.down = true;
    for (let number = 0; number < 10; number += 1) await outcome(scans.scan(target));
    expect(scans.hasRoom).toBe(true);
    spawner.down = false;
    for (let number = 0; number < 10; number += 1) {
      const answer = outcome(scans.scan(target));
      await say(number, saidExit({ code: 2 }));
      expect(await answer).toBe('usage_failed');
    }
    await eventually('room', () => scans.hasRoom);
  });
});

describe('turns', () => {
  it('that come too late are none, and are not lost either', async () => {
    vi.useFakeTimers();
    const slots = new Slots(1, 2);
    const release = await slots.take(10);
    const [late, patient] = [outcome(slots.take(100)), slots.take(1_000)];
    await vi.advanceTimersByTimeAsync(100);
    expect(await late).toBe('overloaded');
    release();
    release();
    const next = await patient;
    expect(slots.taken).toBe(1);
    next();
    expect(slots.taken).toBe(0);
  });
});

describe('the exit statuses', () => {
  it('are those of the native program', () => {
    const header = readFileSync(new URL('../../../helper/native/usage.h', import.meta.url), 'utf8');
    const found = Array.from(header.matchAll(/^#define USAGE_(\w+) (\d+)(?=\s)/gm), ([, name = '', status]) => [
      status,
      name.toLowerCase(),
    ]);
    expect(Object.fromEntries(found)).toEqual({
      2: 'unreadable',
      3: 'too_deep',
      4: 'too_late',
      5: 'too_large',
      64: 'misused',
    });
  });
});
