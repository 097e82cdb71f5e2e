import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { encodeEnd, encodeStop } from '../../../worker/runs/plan.ts';
import { endUser, type OutputSink, Run } from '../../../worker/runs/run.ts';
import { eventually } from '../../support/wait.ts';
import { StandInSpawner } from './support/stand-in-spawner.ts';
import { said, saidEnded, saidExit, saidFailed, saidIncomplete, saidOutput } from './support/wire.ts';

const plan = said(1, Buffer.alloc(80, 1));

let spawner: StandInSpawner;

beforeEach(async () => {
  spawner = await StandInSpawner.open();
});

afterEach(() => spawner.close());

const begin = async (sink: OutputSink = () => true) => {
  const run = new Run(spawner.socketPath, plan, sink);
  const asked = await spawner.connection(0);
  return { run, asked };
};

describe('one run', () => {
  it('sends its plan, once, and nothing else', async () => {
    const { run, asked } = await begin();
    asked.socket.write(saidExit());
    await run.ended;
    await eventually('the end of its half', () => asked.ended());
    expect(asked.received().equals(plan)).toBe(true);
  });

  it('gives its output to the sink, each stream by its name', async () => {
    const seen: string[] = [];
    const { run, asked } = await begin((stream, data) => {
      seen.push(`${stream}:${data.toString()}`);
      return true;
    });
    asked.socket.write(Buffer.concat([saidOutput('stdout', 'a'), saidOutput('stderr', 'b'), saidExit({ code: 4 })]));
    expect(await run.ended).toMatchObject({ kind: 'exit', exit: { exitCode: 4 } });
    expect(seen).toStrictEqual(['stdout:a', 'stderr:b']);
  });

  it('that has not run says the step and the error', async () => {
    const { run, asked } = await begin();
    asked.socket.write(saidFailed(7, 1));
    expect(await run.ended).toStrictEqual({ kind: 'failed', step: 'limits', errno: 'EPERM' });
  });

  it('that resists is told as incomplete, and its end still counts', async () => {
    const { run, asked } = await begin();
    asked.socket.write(saidIncomplete({ reason: 2, flags: 0 }));
    expect(await run.incomplete).toMatchObject({ reason: 'timeout', exitCode: undefined });
    asked.socket.write(saidExit({ reason: 2, flags: 2, signal: 9 }));
    expect(await run.ended).toMatchObject({ kind: 'exit', exit: { signal: 'SIGKILL' } });
  });

  it('is unreached when there is no socket', async () => {
    const run = new Run('/nonexistent/spawner.sock', plan, () => true);
    expect(await run.ended).toStrictEqual({ kind: 'unreached' });
    run.stop();
    run.abandon();
  });

  const silent: readonly (readonly [string, Buffer])[] = [
    ['without a word', Buffer.alloc(0)],
    ['after some output', saidOutput('stdout', 'x')],
    ['after it said that it resists', saidIncomplete()],
    ['in the middle of its last word', saidExit().subarray(0, -1)],
  ];
  it.each(silent)('is lost when its connection ends %s', async (_name, bytes) => {
    const { run, asked } = await begin();
    asked.socket.end(bytes);
    expect(await run.ended).toStrictEqual({ kind: 'lost' });
  });

  const hostile: readonly (readonly [string, Buffer])[] = [
    ['an unknown kind', said(99)],
    ['a message over the limit', said(16, Buffer.alloc(65_537))],
    ['an unknown reason', saidExit({ reason: 9 })],
    ['what answers another question', saidEnded()],
    ['its own plan', plan],
  ];
  it.each(hostile)('is lost, and given up, when it says %s', async (_name, bytes) => {
    const { run, asked } = await begin();
    asked.socket.write(bytes);
    expect(await run.ended).toStrictEqual({ kind: 'lost' });
    await eventually('the connection given up', () => asked.ended() || asked.closed());
  });

  it('keeps its first end, whatever follows', async () => {
    const { run, asked } = await begin();
    asked.socket.write(Buffer.concat([saidExit({ code: 1 }), saidExit({ code: 2 }), said(99)]));
    expect(await run.ended).toMatchObject({ exit: { exitCode: 1 } });
    await eventually('the end', () => asked.ended() || asked.closed());
    expect(await run.ended).toMatchObject({ exit: { exitCode: 1 } });
  });

  it('is asked to stop once, however often', async () => {
    const { run, asked } = await begin();
    run.stop();
    run.stop();
    asked.socket.write(saidExit({ reason: 3 }));
    expect(await run.ended).toMatchObject({ exit: { reason: 'stopped' } });
    run.stop();
    await eventually('the end of its half', () => asked.ended());
    expect(asked.received().equals(Buffer.concat([plan, encodeStop()]))).toBe(true);
  });

  it('is lost when it is given up', async () => {
    const { run, asked } = await begin();
    run.abandon();
    expect(await run.ended).toStrictEqual({ kind: 'lost' });
    await eventually('the end', () => asked.ended() || asked.closed());
  });

  it('is not read from while its sink is full', async () => {
    let taken = 0;
    const state: { resume?: () => void } = {};
    const { run, asked } = await begin((_stream, data, resume) => {
      taken += data.length;
      if (taken > 1 && state.resume) return true;
      state.resume = resume;
      return false;
    });
    asked.socket.write(saidOutput('stdout', 'x'));
    await eventually('the pause', () => state.resume);
    const whole = said(16, Buffer.alloc(60_000));
    const count = 100;
    for (let number = 0; number < count; number += 1) asked.socket.write(whole);
    // What the kernel does not hold stays here: nobody reads.
    let waiting = asked.socket.writableLength;
    for (let unchanged = 0; unchanged < 50; ) {
      await new Promise(setImmediate);
      unchanged = asked.socket.writableLength === waiting ? unchanged + 1 : 0;
      waiting = asked.socket.writableLength;
    }
    expect(waiting).toBeGreaterThan(4_000_000);
    expect(taken).toBeLessThan(200_000);
    state.resume?.();
    asked.socket.write(saidExit());
    expect((await run.ended).kind).toBe('exit');
    expect(taken).toBe(1 + count * 60_000);
  });
});

describe('ending all that a user has', () => {
  it('is true when the spawner’s side has seen that nothing is left', async () => {
    const ended = endUser(spawner.socketPath, 930_001);
    const asked = await spawner.connection(0);
    expect(asked.received().equals(encodeEnd(930_001))).toBe(true);
    asked.socket.write(saidEnded());
    expect(await ended).toBe(true);
  });

  const others: readonly (readonly [string, Buffer])[] = [
    ['a failure', saidFailed(1, 71)],
    ['an exit', saidExit()],
    ['output', saidOutput('stdout', 'x')],
    ['what is no message', said(99)],
    ['nothing', Buffer.alloc(0)],
    ['half a word', saidEnded().subarray(0, 4)],
  ];
  it.each(others)('is false when it says %s', async (_name, bytes) => {
    const ended = endUser(spawner.socketPath, 930_001);
    const asked = await spawner.connection(0);
    asked.socket.end(bytes);
    expect(await ended).toBe(false);
  });

  it('is false when it cannot be asked', async () => {
    expect(await endUser('/nonexistent/spawner.sock', 930_001)).toBe(false);
  });
});
