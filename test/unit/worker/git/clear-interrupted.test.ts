import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers/promises';
import { expect, it, onTestFinished, vi } from 'vitest';
import { Refusal } from '../../../../protocol/errors.ts';
import { operations } from '../../../../protocol/operations/index.ts';
import { clearInterrupted } from '../../../../worker/git/clear-interrupted.ts';
import type { FileHelpers } from '../../../../worker/operations/file-helpers.ts';
import { settled } from './session-under-test.ts';

type Call = FileHelpers['call'];

const setup = (answer: Call) => {
  const call = vi.fn<Call>(answer);
  return { helpers: { call }, users: () => call.mock.calls.map(([user, { verb }]) => [user, verb]) };
};

it('clears once for each user whose git workflow was interrupted, and for nobody else', async () => {
  const { helpers, users } = setup(async () => ({}));
  await clearInterrupted(
    [
      { user: 7, operation: 'repo.clone' },
      { user: 8, operation: 'exec' },
      { user: 9, operation: 'repo.agent_worktree' },
      { user: 7, operation: 'repo.push' },
      { user: 9, operation: 'repo.agent_worktree' },
      { user: 10, operation: 'file.write' },
      { user: 11, operation: 'a.repo.push' },
    ],
    helpers,
  );
  expect(users()).toStrictEqual([
    [7, 'clear'],
    [9, 'clear'],
  ]);
});

it('knows every git workflow by the name of its row, and takes nothing else for one', async () => {
  const { helpers, users } = setup(async () => ({}));
  const names = Object.keys(operations);
  await clearInterrupted(
    names.map((operation, user) => ({ user, operation })),
    helpers,
  );
  const cleared = users().map(([user]) => names[Number(user)]);
  expect(cleared.sort()).toStrictEqual([
    'repo.agent_push',
    'repo.agent_worktree',
    'repo.clone',
    'repo.push',
    'repo.worktree',
  ]);
});

it('clears nothing when nothing was interrupted', async () => {
  const { helpers, users } = setup(async () => ({}));
  await clearInterrupted([], helpers);
  expect(users()).toStrictEqual([]);
});

it('is done, for the others too, when one can’t be cleared', async () => {
  const { helpers, users } = setup(async (user) => {
    if (user === 7) throw new Refusal('file_failed');
    if (user === 8) throw new TypeError('a bug');
    return {};
  });
  const interrupted = [7, 8, 9].map((user) => ({ user, operation: 'repo.clone' }));
  await expect(clearInterrupted(interrupted, helpers)).resolves.toBeUndefined();
  expect(users()).toHaveLength(3);
});

it('waits no longer than its limit for a helper that never answers, and then for no answer any more', async () => {
  const limit = Promise.withResolvers<void>();
  const waits = vi.spyOn(timers, 'setTimeout').mockImplementation(() => limit.promise as Promise<never>);
  syncBuiltinESMExports();
  onTestFinished(() => {
    waits.mockRestore();
    syncBuiltinESMExports();
  });
  const { helpers } = setup((user) => (user === 7 ? new Promise(() => undefined) : Promise.resolve({})));
  let done = false;
  const clearing = clearInterrupted(
    [7, 8].map((user) => ({ user, operation: 'repo.clone' })),
    helpers,
  ).then(() => {
    done = true;
  });
  await settled();
  const [, , options] = helpers.call.mock.calls[0] ?? [];
  expect([done, options?.deadlineMs, options?.signal.aborted]).toStrictEqual([false, 3_000, false]);
  expect(waits.mock.calls.map(([ms]) => ms)).toStrictEqual([3_000]);
  limit.resolve();
  await clearing;
  expect(options?.signal.aborted).toBe(true);
});
