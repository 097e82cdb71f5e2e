import { constants } from 'node:os';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { processWriteIdsMax } from '../../../../protocol/limits.ts';
import type { Input, Process } from '../../../../worker/processes/process.ts';
import { codeOf, exitWith, processWith, Told } from './support.ts';

let told: Told;
beforeEach(() => {
  told = new Told();
});
afterEach(() => {
  vi.useRealTimers();
});

const running = (tty = false): Process => {
  const process = processWith({ tty });
  process.began(told);
  return process;
};
const input = (data: string, more: Partial<Input> = {}): Input => ({
  data: Buffer.from(data),
  eof: false,
  writeId: undefined,
  ...more,
});
/** A write under a known id needs no room. */
const isKnown = (process: Process, writeId: string): boolean => {
  const { room } = told;
  told.room = 0;
  const code = codeOf(() => process.checkInput(input('x', { writeId })));
  told.room = room;
  return code === undefined;
};
const end = (process: Process): void => process.ended(exitWith(), new Date(1_000));

describe('input', () => {
  it('to one that is being ended is refused: nothing of it would arrive', () => {
    const process = running(true);
    process.terminate(undefined);
    for (const eof of [false, true])
      expect(codeOf(() => process.write(input('x', { eof, writeId: 'w' })))).toBe('process_not_running');
    expect(codeOf(() => process.resize({ rows: 1, cols: 1 }))).toBe('process_not_running');
    expect(told.said).toEqual(['stop']);
  });

  it('to a terminal needs room for the end-of-file character as well', () => {
    const process = running(true);
    told.room = 1;
    expect(codeOf(() => process.write(input('x', { eof: true })))).toBe('process_backpressure');
    expect(process.write(input('x'))).toBe(1);
  });

  it('is handed over whole', () => {
    expect(running().write(input('äb'))).toBe(3);
    expect(told.said).toEqual(['input \xc3\xa4b']);
  });

  it('that there is no room for is refused, and nothing of it is written, nor its end', () => {
    const process = running();
    told.room = 3;
    for (const eof of [false, true]) {
      const given = input('abcd', { eof, writeId: 'w' });
      expect(codeOf(() => process.checkInput(given))).toBe('process_backpressure');
      expect(codeOf(() => process.write(given))).toBe('process_backpressure');
    }
    expect(told.said).toEqual([]);
    // Its id is not taken for one of a write that was done.
    expect(isKnown(process, 'w')).toBe(false);
    told.room = 4;
    expect(process.write(input('abcd', { eof: true, writeId: 'w' }))).toBe(4);
    expect(told.said).toEqual(['input abcd', 'end of input']);
  });

  it('has one end, after which nothing is written', () => {
    const process = running();
    process.write(input('', { eof: true, writeId: 'last' }));
    expect(codeOf(() => process.write(input('x')))).toBe('stdin_closed');
    expect(codeOf(() => process.write(input('', { eof: true })))).toBe('stdin_closed');
    expect(process.write(input('', { eof: true, writeId: 'last' }))).toBe(0);
    expect(told.said).toEqual(['end of input']);
  });

  it('has one end on a terminal too, where it is a character', () => {
    const process = running(true);
    process.write(input('a', { eof: true }));
    expect(codeOf(() => process.write(input('b')))).toBe('stdin_closed');
    expect(told.said).toEqual(['input a', 'input \x04']);
  });

  it('is refused before the beginning and after the end', () => {
    const process = processWith();
    expect(codeOf(() => process.write(input('x')))).toBe('process_not_running');
    process.began(told);
    end(process);
    expect(codeOf(() => process.checkInput(input('x')))).toBe('process_not_running');
    expect(codeOf(() => process.write(input('x')))).toBe('process_not_running');
    expect(told.said).toEqual([]);
  });

  it('under an id is written once, whatever comes under it later, also when all has ended', () => {
    const process = running();
    expect(process.write(input('abc', { writeId: 'w' }))).toBe(3);
    told.room = 0;
    expect(process.write(input('other', { writeId: 'w', eof: true }))).toBe(3);
    end(process);
    expect(codeOf(() => process.checkInput(input('abc', { writeId: 'w' })))).toBeUndefined();
    expect(process.write(input('abc', { writeId: 'w' }))).toBe(3);
    expect(told.said).toEqual(['input abc']);
  });

  it('is known by the newest ids, of which there are so many and no more', () => {
    const process = running();
    for (let id = 0; id <= processWriteIdsMax; id += 1) process.write(input('x', { writeId: `w${id}` }));
    expect(isKnown(process, 'w0')).toBe(false);
    expect(isKnown(process, 'w1')).toBe(true);
    expect(isKnown(process, `w${processWriteIdsMax}`)).toBe(true);
    process.write(input('x', { writeId: 'w0' }));
    expect(told.said.length).toBe(processWriteIdsMax + 2);
  });
});

describe('a size', () => {
  it('is told to a terminal that runs', () => {
    running(true).resize({ rows: 3, cols: 4 });
    expect(told.said).toEqual(['resize 3 4']);
  });

  it('is refused by pipes, and by what has ended, in whatever order it is looked at', () => {
    const [pipes, terminal] = [running(), running(true)];
    expect(codeOf(() => pipes.resize({ rows: 1, cols: 1 }))).toBe('process_not_tty');
    for (const process of [pipes, terminal]) {
      end(process);
      expect(codeOf(() => process.checkResize())).toBe('process_not_running');
      expect(codeOf(() => process.resize({ rows: 1, cols: 1 }))).toBe('process_not_running');
    }
    expect(told.said).toEqual([]);
  });
});

describe('the end', () => {
  it.each([
    [undefined, 'stop', 'SIGTERM', 'stopped', 'terminated'],
    ['SIGKILL', 'kill', 'SIGKILL', 'stopped', 'terminated'],
    ['SIGINT', `signal ${constants.signals.SIGINT}`, 'SIGINT', 'exited', 'terminated'],
    // A signal that nobody asked for.
    ['SIGINT', `signal ${constants.signals.SIGINT}`, 'SIGTERM', 'exited', 'signal'],
  ] as const)('asked for by %s is told as that', (asked, said, signal, reason, expected) => {
    const process = running();
    process.terminate(asked);
    expect(told.said).toEqual([said]);
    expect(process.termination).toBeUndefined();
    process.ended(exitWith({ reason, signal, exitCode: undefined }), new Date(1_000));
    expect(process.termination).toMatchObject({ reason: expected, signal, exitCode: null });
    process.terminate(asked);
    expect(told.said).toEqual([said]);
  });

  it('comes to one that was lost before it began', () => {
    const process = processWith();
    process.lose();
    process.began(told);
    expect(told.said).toEqual(['stop']);
    process.ended(exitWith({ reason: 'stopped', signal: 'SIGTERM', exitCode: undefined }), new Date(1_000));
    expect(process.termination).toMatchObject({ reason: 'link_lost' });
  });

  it('closes both streams: what began a character is told as it is', () => {
    const process = running();
    process.took('stdout', Buffer.from([0xc3]));
    expect(process.windows.stdout.closed).toBe(false);
    end(process);
    expect([process.windows.stdout.closed, process.windows.stderr.closed]).toEqual([true, true]);
  });
});

describe('who waits for a change', () => {
  const never = new AbortController().signal;

  it('is told at the next output, at a stream’s end and at the end', async () => {
    const process = running();
    for (const change of [
      () => process.took('stderr', Buffer.from('x')),
      () => process.took('stdout', Buffer.alloc(0)),
      () => end(process),
    ]) {
      const both = [process.change(60_000, never), process.change(60_000, never)];
      change();
      expect(await Promise.all(both)).toEqual([true, true]);
    }
  });

  it('is told nothing after its time, or when it has gone', async () => {
    vi.useFakeTimers();
    const process = running();
    const late = process.change(50, never);
    const gone = new AbortController();
    const left = process.change(60_000, gone.signal);
    vi.advanceTimersByTime(50);
    expect(await late).toBe(false);
    gone.abort();
    expect(await left).toBe(false);
    expect(await process.change(60_000, gone.signal)).toBe(false);
    expect(await process.change(0, never)).toBe(false);
    // Nothing of those who wait is left.
    expect(vi.getTimerCount()).toBe(0);
  });
});
