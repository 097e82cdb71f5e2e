import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { FsHelper } from '../../../support/fs-helper.ts';
import { UserSpace } from './support/user-space.ts';

const uid = 937_670;
const conversation = 'work/5f0c7c3e-0000-4000-8000-000000000001';
let user: UserSpace;
let helper: FsHelper;

beforeAll(async () => {
  user = new UserSpace(uid);
  helper = await user.helper();
});
beforeEach(() => {
  user.sh(`
    export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
    for p in p q; do
      git init -q repos/$p; git -C repos/$p commit -q --allow-empty -m x
      git -C repos/$p worktree add -q "$HOME/${conversation}/$p" -b chat/1
    done`);
  expect(registered('p')).toBe(true);
  expect(registered('q')).toBe(true);
});
afterEach(async () => {
  expect(await helper.reset()).toStrictEqual({});
});
afterAll(() => user.remove());

const registered = (project: string): boolean =>
  existsSync(join(user.home, `repos/${project}/.git/worktrees/${project}`));
const again = (project: string): void =>
  void user.sh(`git -C repos/${project} worktree add -q "$HOME/${conversation}/${project}" chat/1`);

describe('deleting', () => {
  it('a worktree takes its registration along, and no other; git makes it again', async () => {
    expect(await helper.delete(`${conversation}/p`)).toStrictEqual({});
    expect([registered('p'), registered('q')]).toStrictEqual([false, true]);
    again('p');
    expect(user.sh('git -C repos/p worktree list')).toContain(`${conversation}/p`);
  });

  it('a conversation takes all of its worktrees’ along, closed ones too', async () => {
    user.sh(`chmod 000 ${conversation}/p ${conversation}`);
    expect(await helper.delete(conversation)).toStrictEqual({});
    expect([registered('p'), registered('q')]).toStrictEqual([false, false]);
    again('p');
  });

  it('one that its user has closed the pointer of goes, and its registration stays', async () => {
    user.sh(`chmod 000 ${conversation}/p/.git`);
    expect(await helper.delete(conversation)).toStrictEqual({});
    expect([registered('p'), registered('q')]).toStrictEqual([true, false]);
    user.sh('git -C repos/p worktree prune; git -C repos/q worktree prune');
    again('p');
  });

  it('one whose files name each other by relative paths', async () => {
    user.sh(`
      echo "gitdir: ../../../repos/p/.git/worktrees/p" > ${conversation}/p/.git
      echo "../../../../../${conversation}/p/.git" > repos/p/.git/worktrees/p/gitdir`);
    expect(await helper.delete(`${conversation}/p`)).toStrictEqual({});
    expect(registered('p')).toBe(false);
  });

  it('through a link in the middle', async () => {
    user.sh(`ln -s ${conversation} c`);
    expect(await helper.delete('c/p')).toStrictEqual({});
    expect(registered('p')).toBe(false);
  });
});

describe('a registration stays', () => {
  it.each([
    ['another worktree’s', `echo "gitdir: $HOME/repos/q/.git/worktrees/q" > ${conversation}/p/.git`],
    ['one that points elsewhere', `echo "$HOME/${conversation}/q/.git" > repos/p/.git/worktrees/p/gitdir`],
    ['one whose repository is a link', 'mv repos/p repos/real; ln -s real repos/p'],
    [
      'one whose worktree’s file is a link',
      `mv ${conversation}/p/.git ${conversation}/p/g; ln -s g ${conversation}/p/.git`,
    ],
    ['one whose worktree’s file is a pipe', `rm ${conversation}/p/.git; mkfifo ${conversation}/p/.git`],
    ['one whose own file is a pipe', 'rm repos/p/.git/worktrees/p/gitdir; mkfifo repos/p/.git/worktrees/p/gitdir'],
    ['one named from outside', `echo "gitdir: $OUT/../x/repos/p/.git/worktrees/p" > ${conversation}/p/.git`],
    [
      'a whole repository',
      `echo "gitdir: $HOME/repos/q" > ${conversation}/p/.git; echo "$HOME/${conversation}/p/.git" > repos/q/gitdir`,
    ],
  ])('%s', async (_name, script) => {
    user.sh(script);
    expect(await helper.delete(`${conversation}/p`)).toStrictEqual({});
    expect(existsSync(join(user.home, conversation, 'p'))).toBe(false);
    expect(existsSync(join(user.home, 'repos/p/.git/worktrees/p'))).toBe(true);
    expect(registered('q')).toBe(true);
  });

  it('when the deleted folder is none of those that hold worktrees', async () => {
    user.sh(
      `mkdir -p work/a/b/c; mv ${conversation}/p work/a/b/c/p; git -C repos/p worktree repair -q "$HOME/work/a/b/c/p" || true`,
    );
    expect(await helper.delete('work/a/b/c/p')).toStrictEqual({});
    expect(registered('p')).toBe(true);
  });
});
