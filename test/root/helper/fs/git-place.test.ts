import { existsSync, lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { FsHelper } from '../../../support/fs-helper.ts';
import { addWorktree, conversation, git, makeProjects } from './support/git.ts';
import { UserSpace } from './support/user-space.ts';

const uid = 937_683;
const worktree = `${conversation}/p`;
let user: UserSpace;
let helper: FsHelper;

beforeAll(async () => {
  user = new UserSpace(uid);
  helper = await user.helper();
});
beforeEach(async () => {
  expect(await helper.scratch()).toStrictEqual({});
});
afterEach(async () => {
  expect(await helper.reset()).toStrictEqual({});
  expect(user.tree()).toStrictEqual(user.newTree);
});
afterAll(() => user.remove());

const tmp = (): string[] => readdirSync(join(user.space, 'tmp'));
const isFolder = (path: string): boolean => lstatSync(join(user.home, path)).isDirectory();

describe('a clone', () => {
  beforeEach(() => {
    git(user, 'git init -q "$SCRATCH/tree"; echo x > "$SCRATCH/tree/f"');
  });

  it.each([
    ['is moved as it is', ':'],
    ['makes repos if that is missing', 'rmdir repos'],
  ])('%s', async (_name, script) => {
    user.sh(script);
    expect(await helper.place('repos/p')).toStrictEqual({});
    expect(existsSync(join(user.home, 'repos/p/f'))).toBe(true);
    expect(await helper.repository('p')).toStrictEqual({ project: 'clone', worktree: null });
    expect(lstatSync(join(user.home, 'repos')).mode).toBe(0o40700);
    expect(tmp()).toStrictEqual([]);
  });

  it.each([
    ['an empty folder', 'mkdir repos/p', 'exists'],
    ['a file', ': > repos/p', 'exists'],
    ['a dangling link', 'ln -s none repos/p', 'exists'],
    ['a link beneath the home instead of repos', 'rmdir repos; mkdir d; ln -s d repos', 'bad_target'],
    ['a link out', 'rmdir repos; ln -s ../../outside repos', 'bad_target'],
    ['a file instead of repos', 'rmdir repos; : > repos', 'bad_target'],
    ['a dangling link instead of repos', 'rmdir repos; ln -s none repos', 'bad_target'],
    ['a folder that can’t be written', 'chmod 500 repos', 'file_failed'],
    ['no tree', 'rm -r "$SPACE/tmp/.git-workflow/tree"', 'bad_target'],
    ['no tree, and no repos', 'rm -r "$SPACE/tmp/.git-workflow/tree"; rmdir repos', 'bad_target'],
    ['no scratch folder', 'rm -r "$SPACE/tmp/.git-workflow"', 'file_failed'],
    ['a tree that is a link', 'cd ../tmp/.git-workflow; mv tree t; ln -s t tree', 'bad_target'],
    ['a tree that is a file', 'cd ../tmp/.git-workflow; rm -r tree; : > tree', 'bad_target'],
    ['a scratch folder that is a link', 'cd ../tmp; mv .git-workflow g; ln -s g .git-workflow', 'bad_target'],
  ])('stays where it is, with %s', async (_name, script, code) => {
    user.sh(script);
    const before = [...user.tree(), ...user.tree(user.outside)];
    expect(await helper.place('repos/p')).toBe(code);
    expect([...user.tree(), ...user.tree(user.outside)]).toStrictEqual(before);
  });
});

describe('a worktree', () => {
  beforeEach(() => {
    makeProjects(user, 'p', 'q');
    git(user, 'git -C repos/p worktree add -q "$SCRATCH/tree" -b chat/1');
  });
  const works = async (): Promise<void> => {
    expect(await helper.repository('p', worktree)).toStrictEqual({ project: 'clone', worktree: 'linked' });
    expect(git(user, `git -C ${worktree} status --porcelain --branch`)).toBe('## chat/1\n');
    git(user, `git -C repos/p worktree prune; git -C ${worktree} commit -q --allow-empty -m y`);
    expect(git(user, 'git -C repos/p worktree list')).toContain(join(user.home, worktree));
    expect(tmp()).toStrictEqual([]);
  };

  it('is moved, its registration with it, and the folders above are made', async () => {
    expect(await helper.place(worktree, 'p')).toStrictEqual({});
    await works();
    expect(lstatSync(join(user.home, conversation)).mode).toBe(0o40700);
  });

  it('is moved beside another of its conversation', async () => {
    addWorktree(user, 'q', `${conversation}/q`, 'chat/1');
    expect(await helper.place(worktree, 'p')).toStrictEqual({});
    await works();
    expect(await helper.repository('q', `${conversation}/q`)).toStrictEqual({ project: 'clone', worktree: 'linked' });
  });

  it('is moved where no work is', async () => {
    user.sh('rmdir work');
    expect(await helper.place(worktree, 'p')).toStrictEqual({});
    await works();
  });

  it('is moved though its files name each other by relative paths, as a newer git makes it', async () => {
    user.sh(`
      echo "gitdir: ../../../home/repos/p/.git/worktrees/tree" > ../tmp/.git-workflow/tree/.git
      echo ../../../../../../tmp/.git-workflow/tree/.git > repos/p/.git/worktrees/tree/gitdir`);
    git(user, 'git -C "$SCRATCH/tree" status');
    expect(await helper.place(worktree, 'p')).toStrictEqual({});
    await works();
  });

  it('can be deleted and made again', async () => {
    expect(await helper.place(worktree, 'p')).toStrictEqual({});
    expect(await helper.delete(conversation)).toStrictEqual({});
    expect(existsSync(join(user.home, 'repos/p/.git/worktrees/tree'))).toBe(false);
    await helper.scratch();
    git(user, 'git -C repos/p worktree add -q "$SCRATCH/tree" chat/1');
    expect(await helper.place(worktree, 'p')).toStrictEqual({});
    await works();
  });

  const registration = 'repos/p/.git/worktrees/tree';
  const tree = '"$SPACE/tmp/.git-workflow/tree"';
  it.each([
    ['something there', `mkdir -p ${worktree}`, 'exists'],
    ['a link there', `mkdir -p ${conversation}; ln -s none ${worktree}`, 'exists'],
    ['a link above', `mkdir real; ln -s ../real ${conversation}`, 'bad_target'],
    ['a link to another folder above', 'rmdir work; mkdir real; ln -s real work', 'bad_target'],
    ['a file above', `: > ${conversation}`, 'bad_target'],
    ['a pipe above', 'rmdir work; mkfifo work', 'bad_target'],
    ['a folder above that can’t be written', 'chmod 500 work', 'file_failed'],
    [
      'a tree that names another project',
      `echo "gitdir: $HOME/repos/q/.git/worktrees/tree" > ${tree}/.git`,
      'bad_target',
    ],
    ['a tree that is a repository', `rm ${tree}/.git; git init -q ${tree}`, 'bad_target'],
    ['a tree whose .git is a pipe', `rm ${tree}/.git; mkfifo ${tree}/.git`, 'bad_target'],
    ['a registration that points elsewhere', `echo "$HOME/${worktree}/.git" > ${registration}/gitdir`, 'bad_target'],
    ['a registration of another repository', `echo "$HOME/repos/q/.git" > ${registration}/commondir`, 'bad_target'],
    ['a registration that is a link', `mv ${registration} r; ln -s ../../../../r ${registration}`, 'bad_target'],
    ['no registration', `rm -r ${registration}`, 'bad_target'],
    ['a closed registration', `chmod 000 ${registration}`, 'bad_target'],
    ['a registration that can’t be written', `chmod 500 ${registration}`, 'file_failed'],
  ])('stays where it is, with %s', async (_name, script, code) => {
    user.sh(script);
    const before = [...user.tree(), ...user.tree(user.outside)];
    expect(await helper.place(worktree, 'p')).toBe(code);
    expect([...user.tree(), ...user.tree(user.outside)]).toStrictEqual(before);
  });

  it('of another project stays where it is', async () => {
    expect(await helper.place(`${conversation}/q`, 'q')).toBe('bad_target');
    expect(readdirSync(join(user.home, 'work'))).toStrictEqual([]);
    expect(isFolder('../tmp/.git-workflow/tree')).toBe(true);
  });
});
