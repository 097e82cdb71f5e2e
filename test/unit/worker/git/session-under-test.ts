import { expect, onTestFinished, vi } from 'vitest';
import type { GitCommand } from '../../../../worker/git/commands.ts';
import { GitSession } from '../../../../worker/git/session.ts';
import { workflowParts } from './support.ts';

/** A command of a workflow. */
export const command: GitCommand = { directory: 'repos/x', args: ['status'], runsPrograms: false };
/** Of user 7. */
export const space = '/var/tmp/u20007';
const of = { user: 7, space, action: 'repo.clone', entries: ['TOKEN=secret'] } as const;

/** A session on stand-ins. */
export const setup = (settings?: Readonly<Record<string, string>>) => {
  const parts = workflowParts(settings);
  /** One that is not put on record, unless `steps` do that. */
  const look = <T>(steps: (session: GitSession) => Promise<T>) =>
    GitSession.run(parts.dependencies, of, parts.context, steps);
  const run = <T>(steps: (session: GitSession) => Promise<T>) =>
    look(async (session) => {
      await session.begin();
      return steps(session);
    });
  /** Everything given back: once. */
  const expectGivenBack = (): void => {
    expect(parts.isFree()).toBe(true);
    expect(parts.runs.taken).toBe(1);
    expect(parts.runs.full).toBe(false);
    // Of one place: given back twice, there would be two.
    parts.runs.take();
    expect(parts.runs.full).toBe(true);
  };
  /** Cleared away, counted anew, and everything given back: once. */
  const expectClosed = (): void => {
    expect(parts.helpers.calls.filter(({ call }) => call.verb === 'clear')).toHaveLength(1);
    expect(parts.quota.asked).toStrictEqual(['changed 7']);
    expectGivenBack();
  };
  return { ...parts, look, run, expectGivenBack, expectClosed };
};

/** A clock that stands still until it is set. */
export const setClock = (): { now: number } => {
  const clock = { now: 1_000 };
  const spy = vi.spyOn(performance, 'now').mockImplementation(() => clock.now);
  onTestFinished(() => spy.mockRestore());
  return clock;
};

/** Lets everything that is ready to go on do so. */
export const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
};
