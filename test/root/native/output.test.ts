import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { attack, left, native, noneLeft, Spawner, sanitized, wire } from '../../support/spawner-client.ts';
import { eventually } from '../../support/wait.ts';

const uid = 900_401;
const colluder = 900_402;

describe.each([
  ['release', native, 200],
  ['sanitized', sanitized, 40],
])('the output of a run, %s', (_name, program, times) => {
  let spawner: Spawner;
  beforeAll(async () => {
    spawner = await Spawner.start({ program });
    spawner.makeSpace(uid);
    spawner.makeSpace(colluder);
  });
  afterAll(async () => await spawner.stop());

  test('all of it arrives before the exit, each time', async () => {
    const wrong: number[] = [];
    for (let i = 0; i < times; i++) {
      const { stdout, exit } = await spawner.run({ uid, args: ['/usr/bin/head', '-c', '60000', '/dev/zero'] });
      if (stdout.length !== 60_000 || exit?.flags !== wire('EXIT_HAS_CODE')) wrong.push(stdout.length);
    }
    expect(wrong).toEqual([]);
  });

  test('each byte in its order, both streams apart', async () => {
    const script = 'seq 1 30000; seq 30001 60000 >&2';
    const { stdout, stderr, exit } = await spawner.shell(uid, script, { outputCap: 1_000_000 });
    const count = (from: number, to: number) =>
      Array.from({ length: to - from + 1 }, (_, i) => `${from + i}\n`).join('');
    expect(stdout.toString()).toBe(count(1, 30_000));
    expect(stderr.toString()).toBe(count(30_001, 60_000));
    expect(exit?.flags).toBe(wire('EXIT_HAS_CODE'));
  });

  test.each([
    [0, 0, false],
    [0, 1, true],
    [1000, 999, false],
    [1000, 1000, false],
    [1000, 1001, true],
    [262_144, 262_144, false],
    [262_144, 262_145, true],
  ])('a cap of %i and %i bytes', async (outputCap, bytes, cut) => {
    const { stdout, stderr, exit } = await spawner.shell(uid, `head -c ${bytes} /dev/zero; echo err >&2`, {
      outputCap,
    });
    expect(stdout.length).toBe(Math.min(outputCap, bytes));
    expect(stderr.toString()).toBe('err\n'.slice(0, outputCap));
    expect((exit?.flags ?? 0) & wire('EXIT_STDOUT_CUT')).toBe(cut ? wire('EXIT_STDOUT_CUT') : 0);
    expect((exit?.flags ?? 0) & wire('EXIT_STDERR_CUT')).toBe(outputCap < 4 ? wire('EXIT_STDERR_CUT') : 0);
  });

  test('a reader that has enough costs the tool nothing', async () => {
    const args = ['-c', '200000000', '/dev/zero'];
    const plain = async () =>
      await new Promise<number>((resolve, reject) => {
        const start = performance.now();
        execFile('/bin/sh', ['-c', `head ${args.join(' ')} | cat >/dev/null`], (error) =>
          error === null ? resolve(performance.now() - start) : reject(error),
        );
      });
    const asFast = async () => {
      const limitMs = (await plain()) * 2 + 50;
      const start = performance.now();
      const { stdout, exit } = await spawner.run({ uid, args: ['/usr/bin/head', ...args] });
      const took = performance.now() - start;
      expect(stdout.length).toBe(262_144);
      expect(exit).toMatchObject({ code: 0, flags: wire('EXIT_HAS_CODE') | wire('EXIT_STDOUT_CUT') });
      return took < limitMs;
    };
    // What else the machine does can only make it slower: one undisturbed try shows it.
    await eventually('a run as fast as a reader that discards', asFast, 40_000);
  });

  test('a worker that stalls costs no memory, and the time limit holds', async () => {
    const socket = await spawner.socket();
    const run = await spawner.start({ uid, args: ['/usr/bin/yes'], outputCap: 1e12, timeLimitMs: 1_500 });
    socket.destroy();
    run.socket.pause();
    const [supervisor] = await eventually('its supervisor alone', () => {
      const all = spawner.supervisors();
      return all.length === 1 && all;
    });
    await new Promise((resolve) => setTimeout(resolve, 500));
    const resident = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${supervisor}/status`, 'utf8'))?.[1]);
    const first = resident();
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(resident() - first).toBeLessThan(512);
    expect(resident()).toBeLessThan(program === native ? 4_096 : 65_536);
    await noneLeft(uid);
    run.socket.resume();
    const { exit } = await run.outcome;
    expect(exit).toMatchObject({ reason: wire('END_TIMEOUT'), signal: 9 });
  });

  test('a worker that stalls and goes away is noticed', async () => {
    const run = await spawner.start({ uid, args: ['/usr/bin/yes'], outputCap: 1e12 });
    run.socket.pause();
    await eventually('it runs', () => left(uid).length === 1);
    await new Promise((resolve) => setTimeout(resolve, 200)); // what fills the socket
    expect(left(uid).length).toBe(1);
    run.socket.destroy();
    await noneLeft(uid);
  });

  test('a process outside of the run that got hold of the pipe, and writes for ever', async () => {
    const name = `native-test-${process.pid}-${program.length}`;
    const taker = await spawner.start({ uid: colluder, args: [attack, 'take-output', name] });
    await taker.said('set');
    const start = performance.now();
    const { stdout, exit } = await spawner.run({ uid, args: [attack, 'pass-output', name], outputCap: 1e12 });
    expect(performance.now() - start).toBeLessThan(10_000);
    expect(exit).toMatchObject({ reason: wire('END_EXITED'), code: 0 });
    expect(stdout.toString()).toContain('set\n');
    expect(stdout.toString()).toContain('!!!!');
    expect(left(uid)).toEqual([]);
    expect(left(colluder).length).toBe(1);
    taker.stop();
    await taker.outcome;
  });
});
