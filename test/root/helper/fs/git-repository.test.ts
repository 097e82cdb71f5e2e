import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { FsHelper } from '../../../support/fs-helper.ts';
import { addWorktree, conversation, git, makeProjects } from './support/git.ts';
import { UserSpace } from './support/user-space.ts';

const uid = 937_680;
const worktree = `${conversation}/p`;
const registration = 'repos/p/.git/worktrees/p';
let user: UserSpace;
let helper: FsHelper;

beforeAll(async () => {
  user = new UserSpace(uid);
  helper = await user.helper();
});
afterEach(async () => {
  expect(await helper.reset()).toStrictEqual({});
});
afterAll(() => user.remove());

describe('what is at the place of a clone', () => {
  it.each([
    ['nothing', ':', 'absent'],
    ['nothing, repos missing too', 'rmdir repos', 'absent'],
    ['nothing, repos a dangling link', 'rmdir repos; ln -s none repos', 'other'],
    ['a repository', 'mkdir -p repos/p/.git', 'clone'],
    ['a repository, repos a link beneath the home', 'rmdir repos; ln -s d repos; mkdir -p d/p/.git', 'other'],
    ['a folder', 'mkdir repos/p', 'other'],
    ['a file', ': > repos/p', 'other'],
    ['a pipe', 'mkfifo repos/p', 'other'],
    ['a link to a repository', 'mkdir -p d/.git; ln -s ../d repos/p', 'other'],
    ['a dangling link', 'ln -s none repos/p', 'other'],
    ['a repository whose .git is a link', 'mkdir -p d repos/p; ln -s ../../d repos/p/.git', 'other'],
    ['one whose .git is a file', 'mkdir repos/p; echo "gitdir: $HOME/d" > repos/p/.git', 'other'],
    ['one whose .git is a pipe', 'mkdir repos/p; mkfifo repos/p/.git', 'other'],
    ['one whose .git leads to another', 'mkdir -p repos/p/.git; echo "$HOME/d" > repos/p/.git/commondir', 'other'],
    ['a closed one', 'mkdir -p repos/p/.git; chmod 000 repos/p', 'other'],
    ['one in a closed folder', 'mkdir -p repos/p/.git; chmod 000 repos', 'other'],
    ['one outside', 'rmdir repos; mkdir -p "$OUT/p/.git"; ln -s ../../outside repos', 'other'],
    ['a file instead of repos', 'rmdir repos; : > repos', 'other'],
  ])('%s', async (_name, script, project) => {
    user.sh(script);
    expect(await helper.repository('p')).toStrictEqual({ project, worktree: null });
  });
});

describe('what is at the place of a worktree', () => {
  beforeEach(async () => {
    makeProjects(user, 'p', 'q');
    addWorktree(user, 'p', worktree, 'chat/1');
    addWorktree(user, 'q', `${conversation}/q`, 'chat/1');
    expect(await helper.repository('p', worktree)).toStrictEqual({ project: 'clone', worktree: 'linked' });
  });

  it.each([
    ['nothing', `rm -r ${worktree}`, 'absent'],
    ['nothing, and no conversation', `rm -r ${conversation}`, 'absent'],
    ['nothing, and no work', 'rm -r work', 'absent'],
    ['a folder', `rm ${worktree}/.git`, 'other'],
    ['a file', `rm -r ${worktree}; : > ${worktree}`, 'other'],
    ['a repository of its own', `rm ${worktree}/.git; git init -q ${worktree}`, 'other'],
    ['a link to a worktree', `mv ${worktree} real; ln -s ../../real ${worktree}`, 'other'],
    ['one reached by a link', `mv ${conversation} real; ln -s ../real ${conversation}`, 'other'],
    ['one reached by a link instead of work', 'mv work real; ln -s real work', 'other'],
    ['nothing behind a link', `mv ${conversation} real; rm -r real/p; ln -s ../real ${conversation}`, 'other'],
    ['nothing behind a link instead of work', 'mv work real; rm -r real/*; ln -s real work', 'other'],
    ['nothing behind a dangling link', `mv ${conversation} real; ln -s none ${conversation}`, 'other'],
    ['one whose .git is a link', `mv ${worktree}/.git ${worktree}/g; ln -s g ${worktree}/.git`, 'other'],
    ['one whose .git is a pipe', `rm ${worktree}/.git; mkfifo ${worktree}/.git`, 'other'],
    ['one whose .git is huge', `truncate -s 1T ${worktree}/.git`, 'other'],
    ['one whose .git is closed', `chmod 000 ${worktree}/.git`, 'other'],
    ['a closed one', `chmod 000 ${worktree}`, 'other'],
    ['one that names another project', `echo "gitdir: $HOME/repos/q/.git/worktrees/q" > ${worktree}/.git`, 'other'],
    [
      'one of another project, that points back',
      `echo "gitdir: $HOME/repos/q/.git/worktrees/q" > ${worktree}/.git
       echo "$HOME/${worktree}/.git" > repos/q/.git/worktrees/q/gitdir`,
      'other',
    ],
    [
      'one with a second line, which git would take for a part of the path',
      `mkdir -p "$HOME/${registration}
x"; echo "gitdir: $HOME/${registration}
x" > ${worktree}/.git`,
      'other',
    ],
    [
      'one that goes there by way of a link',
      `mkdir -p "$OUT/a"; ln -s "$OUT/a" l; echo "gitdir: $HOME/l/../${registration}" > ${worktree}/.git`,
      'other',
    ],
    ['one whose registration is gone', `rm -r ${registration}`, 'other'],
    ['one whose registration is a link', `mv ${registration} real; ln -s ../../../../real ${registration}`, 'other'],
    ['one whose repository is a link', 'mv repos/p real; ln -s ../real repos/p', 'other'],
    [
      'one whose registration points elsewhere',
      `echo "$HOME/${conversation}/q/.git" > ${registration}/gitdir`,
      'other',
    ],
    ['one whose registration points nowhere', `rm ${registration}/gitdir; mkfifo ${registration}/gitdir`, 'other'],
    [
      'one whose registration is of another repository',
      `echo "$HOME/repos/q/.git" > ${registration}/commondir`,
      'other',
    ],
    ['the same by a relative path', `echo ../../../../q/.git > ${registration}/commondir`, 'other'],
    [
      'one whose registration lies in another repository, and takes git to the right one',
      `echo "gitdir: $HOME/repos/q/.git/worktrees/q" > ${worktree}/.git
       echo "$HOME/${worktree}/.git" > repos/q/.git/worktrees/q/gitdir
       echo "$HOME/repos/p/.git" > repos/q/.git/worktrees/q/commondir`,
      'other',
    ],
    ['one without a commondir', `rm ${registration}/commondir`, 'other'],
  ])('%s', async (_name, script, seen) => {
    git(user, script);
    expect(await helper.repository('p', worktree)).toMatchObject({ worktree: seen });
  });

  it('one whose files name each other by relative paths, as a newer git makes it', async () => {
    user.sh(`
      echo "gitdir: ../../../${registration}" > ${worktree}/.git
      echo "../../../../../${worktree}/.git" > ${registration}/gitdir`);
    expect(git(user, `git -C ${worktree} rev-parse --abbrev-ref HEAD`)).toBe('chat/1\n');
    expect(await helper.repository('p', worktree)).toStrictEqual({ project: 'clone', worktree: 'linked' });
  });

  it('changes nothing by looking', async () => {
    user.sh(`chmod 500 ${worktree}; chmod 0 repos/q`);
    const before = user.tree(user.home);
    await helper.repository('p', worktree);
    await helper.repository('q', `${conversation}/q`);
    expect(user.tree(user.home)).toStrictEqual(before);
  });
});
