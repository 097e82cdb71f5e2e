import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FsHelper } from '../../../support/fs-helper.ts';
import { allSteps, atEachStep } from './support/doomed.ts';
import { conversation, git, makeProjects } from './support/git.ts';
import { UserSpace } from './support/user-space.ts';

const uid = 937_684;
const worktree = `${conversation}/p`;
let user: UserSpace;
let next: FsHelper;

beforeAll(async () => {
  user = new UserSpace(uid);
  next = await user.helper();
  makeProjects(user, 'p');
});
afterAll(() => user.remove());

const add = (): void => void git(user, 'git -C repos/p worktree add -q -B chat/1 "$SCRATCH/tree"');
/** What a workflow does: the scratch, the left-overs, git, the place. */
const makeWorktree = async (): Promise<unknown> => {
  expect(await next.scratch()).toStrictEqual({});
  expect(await next.unregister('p', worktree)).toStrictEqual({});
  add();
  return next.place(worktree, 'p');
};

describe('a helper that is killed', () => {
  // What place changes by: its files, its moves, its folders.
  const steps = allSteps.filter((calls) => /rename|mkdir|write/.test(calls));

  it('at any step of placing a worktree: it is there and works, or not there and can be made', async () => {
    const seen = new Set<string>();
    const kills = await atEachStep(
      user,
      steps,
      async () => {
        if (existsSync(join(user.home, conversation))) expect(await next.delete(conversation)).toStrictEqual({});
        expect(await next.scratch()).toStrictEqual({});
        add();
      },
      (helper) => helper.place(worktree, 'p'),
      async () => {
        const { worktree: found } = (await next.repository('p', worktree)) as { worktree: string };
        seen.add(found);
        if (found === 'absent') expect(await makeWorktree()).toStrictEqual({});
        else expect(await next.clear()).toStrictEqual({});
        expect(git(user, `git -C ${worktree} status --porcelain --branch`)).toBe('## chat/1\n');
        expect(await next.repository('p', worktree)).toStrictEqual({ project: 'clone', worktree: 'linked' });
        expect(readdirSync(join(user.home, 'repos/p/.git/worktrees'))).toHaveLength(1);
        expect(user.tree(join(user.space, 'tmp'))).toStrictEqual([]);
        expect(readdirSync(user.space).sort()).toStrictEqual(['home', 'tmp']);
      },
    );
    expect(kills).toBeGreaterThan(6);
    // Never anything else than the one or the other.
    expect([...seen].sort()).toStrictEqual(['absent', 'linked']);
  });

  it('at any step of making the scratch folder: the next one is whole', async () => {
    let partial = 0;
    // It makes two repositories, folder by folder.
    await atEachStep(
      user,
      steps.filter((calls) => calls.includes('mkdir')),
      () => next.clear(),
      (helper) => helper.scratch({ format: 'sha1', borrows: 'p' }),
      async () => {
        if (existsSync(join(user.space, 'tmp/.git-workflow'))) partial += 1;
        expect(await next.scratch()).toStrictEqual({});
        expect(readdirSync(join(user.space, 'tmp/.git-workflow'))).toStrictEqual(['home']);
      },
    );
    expect(partial).toBeGreaterThan(3);
  });
});
