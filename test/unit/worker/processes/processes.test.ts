import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Process } from '../../../../worker/processes/process.ts';
import { Processes, type ProcessLimits } from '../../../../worker/processes/processes.ts';
import type { RunExit } from '../../../../worker/runs/messages.ts';
import type { RunEnd } from '../../../../worker/runs/run.ts';
import { collectingAudit } from '../support/collect.ts';
import { codeOf, exitWith, Told } from './support.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const limits: ProcessLimits = { handlesMax: 3, retainBytes: 1024, retainMs: 5_000 };
const setup = (more: Partial<ProcessLimits> = {}) => {
  const { audit, lines } = collectingAudit();
  const processes = new Processes({ ...limits, ...more }, audit);
  const open = (user = 7, workspaceId = String(user)): Process =>
    processes.open({ workspaceId, user, tool: 'sh', tty: false });
  /** One that runs, and what ends it. */
  const begin = (user?: number, workspaceId?: string) => {
    const process = open(user, workspaceId);
    const told = new Told();
    const outcome = Promise.withResolvers<RunEnd | { readonly kind: 'incomplete'; readonly exit: RunExit }>();
    const gone = Promise.withResolvers<RunEnd>();
    const started = Promise.resolve();
    processes.began(process, { outcome: outcome.promise, gone: gone.promise, started, controls: told }, 'an-operation');
    const end = async (how: RunEnd = exitWith()): Promise<void> => {
      outcome.resolve(how);
      gone.resolve(how);
      await vi.advanceTimersByTimeAsync(0);
    };
    return { process, told, outcome, gone, end, id: process.facts.processId };
  };
  return { processes, open, begin, lines, found: (id: string) => codeOf(() => processes.get(id)) ?? 'found' };
};

describe('a handle', () => {
  it('is the user’s number and 128 bits that nobody can guess', () => {
    const { open } = setup({ handlesMax: 100 });
    const ids = Array.from({ length: 100 }, () => open(12).facts.processId);
    for (const id of ids) expect(id).toMatch(/^12-[A-Za-z0-9_-]{22}$/);
    expect(new Set(ids).size).toBe(100);
  });

  it('is not known before its process has begun, nor when it was dropped', () => {
    const { processes, open, found } = setup();
    const process = open();
    expect(found(process.facts.processId)).toBe('process_not_found');
    expect(processes.of('7')).toEqual([]);
    processes.drop(process);
    expect(found(process.facts.processId)).toBe('process_not_found');
  });

  it('is good until some time after the end, and not before all of it is gone', async () => {
    const { begin, found, processes } = setup();
    const one = begin();
    await vi.advanceTimersByTimeAsync(60_000);
    one.outcome.resolve(exitWith());
    await vi.advanceTimersByTimeAsync(60_000);
    expect(one.process.termination).toBeUndefined();
    one.gone.resolve(exitWith());
    await vi.advanceTimersByTimeAsync(4_999);
    expect(found(one.id)).toBe('found');
    expect(one.process.termination).toMatchObject({ reason: 'exit', exitCode: 0 });
    await vi.advanceTimersByTimeAsync(1);
    expect(found(one.id)).toBe('process_not_found');
    expect(processes.of('7')).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('is listed under its own workspace, oldest first, running or not', async () => {
    const { begin, processes } = setup();
    const [first, , third] = [begin(7, '7:sub'), begin(7), begin(7, '7:sub')];
    await third.end();
    expect(processes.of('7:sub')).toEqual([first.process, third.process]);
  });
});

describe('a lost link', () => {
  it('leaves none that is said to run: until it has ended it is not found, and then it is told', async () => {
    const { begin, found, processes } = setup();
    const [running, ended] = [begin(), begin()];
    await ended.end();
    processes.lose();
    expect([found(running.id), found(ended.id)]).toEqual(['process_not_found', 'found']);
    expect(processes.of('7')).toEqual([ended.process]);
    await running.end(exitWith({ reason: 'stopped', exitCode: undefined, signal: 'SIGKILL' }));
    expect(found(running.id)).toBe('found');
    expect(running.process.termination).toMatchObject({ reason: 'link_lost', exitCode: null });
  });
});

describe('the number of handles', () => {
  it('has a bound: the one that ended first goes', async () => {
    const { begin, found } = setup();
    const [first, second, third] = [begin(), begin(), begin()];
    // The order of the ends is another one.
    await third.end();
    await second.end();
    const fourth = begin();
    expect([first, second, third, fourth].map(({ id }) => found(id))).toEqual([
      'found',
      'found',
      'process_not_found',
      'found',
    ]);
    // Nothing of it is left, its expiry neither.
    expect(vi.getTimerCount()).toBe(1);
  });

  it('costs nobody a handle for a start that is refused after all', async () => {
    const { begin, open, processes, found } = setup();
    const [first, second, third] = [begin(), begin(), begin()];
    await first.end();
    processes.drop(open());
    expect([first, second, third].map(({ id }) => found(id))).toEqual(['found', 'found', 'found']);
  });

  it('is refused to be more only when all run', async () => {
    const { begin, open, found } = setup();
    const [first] = [begin(), begin(), begin()];
    expect(codeOf(() => open())).toBe('overloaded');
    expect(codeOf(() => open())).toBe('overloaded');
    await first.end();
    const next = begin();
    expect([found(first.id), found(next.id)]).toEqual(['process_not_found', 'found']);
  });

  it('counts what is about to begin, and not what was dropped', () => {
    const { open, processes } = setup();
    const [one] = [open(), open(), open()];
    expect(codeOf(() => open())).toBe('overloaded');
    if (one !== undefined) processes.drop(one);
    expect(codeOf(() => open())).toBeUndefined();
  });
});

describe('the end', () => {
  it('is waited for by whoever asked for it; one that cannot be ended in time is told, and still ends', async () => {
    const { begin, processes } = setup();
    const [ends, resists] = [begin(), begin()];
    const over = processes.gone(ends.process);
    await ends.end();
    await expect(over).resolves.toBeUndefined();
    const refused = expect(processes.gone(resists.process)).rejects.toMatchObject({ code: 'kill_incomplete' });
    resists.outcome.resolve({
      ...exitWith({ reason: 'stopped', exitCode: undefined, signal: undefined }),
      kind: 'incomplete',
    });
    await refused;
    expect(resists.process.termination).toBeUndefined();
    resists.gone.resolve(exitWith({ reason: 'stopped', exitCode: undefined, signal: 'SIGKILL' }));
    await vi.advanceTimersByTimeAsync(0);
    expect(resists.process.termination).toMatchObject({ reason: 'terminated', signal: 'SIGKILL' });
    await expect(processes.gone(resists.process)).resolves.toBeUndefined();
  });

  it('comes with the link to all that run, and to what is about to begin; what has ended stays as it was', async () => {
    const { begin, open, processes } = setup();
    const [running, ended] = [begin(), begin()];
    const opened = open();
    await ended.end();
    processes.lose();
    expect([running.told.said, ended.told.said]).toEqual([['stop'], []]);
    const told = new Told();
    opened.began(told);
    expect(told.said).toEqual(['stop']);
    expect(ended.process.termination).toMatchObject({ reason: 'exit' });
    await running.end(exitWith({ reason: 'stopped', exitCode: undefined, signal: 'SIGTERM' }));
    expect(running.process.termination).toMatchObject({ reason: 'link_lost' });
  });

  it.each([
    [exitWith({ exitCode: 3 }), { status: 'ok', exit: 3 }],
    [exitWith({ exitCode: undefined, signal: 'SIGSEGV' }), { status: 'ok' }],
    [exitWith({ reason: 'timeout', exitCode: undefined, signal: 'SIGKILL' }), { status: 'timeout' }],
    [{ kind: 'lost' } as const, { status: 'error', reason: 'link_lost' }],
  ])('%# is audited as what it was', async (how, expected) => {
    const { begin, lines } = setup();
    const one = begin(9);
    await vi.advanceTimersByTimeAsync(1_500);
    expect(lines()).toEqual([]);
    await one.end(how);
    expect(lines()).toStrictEqual([
      {
        time: expect.any(String),
        action: 'process.exit',
        user: 9,
        tool: 'sh',
        ms: 1_500,
        operationId: 'an-operation',
        ...expected,
      },
    ]);
  });
});
