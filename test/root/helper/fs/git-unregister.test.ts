import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { FsHelper } from '../../../support/fs-helper.ts';
import { addWorktree, conversation, git, makeProjects } from './support/git.ts';
import { UserSpace } from './support/user-space.ts';

const uid = 937_682;
const worktree = `${conversation}/p`;
const other = 'work/5f0c7c3e-0000-4000-8000-000000000002/p';
let user: UserSpace;
let helper: FsHelper;

beforeAll(async () => {
  user = new UserSpace(uid);
  helper = await user.helper();
});
beforeEach(() => {
  makeProjects(user, 'p');
  addWorktree(user, 'p', worktree, 'chat/1');
  addWorktree(user, 'p', other, 'chat/2');
  expect(registered()).toStrictEqual([worktree, other]);
});
afterEach(async () => {
  expect(await helper.reset()).toStrictEqual({});
});
afterAll(() => user.remove());

/** Which worktrees the project knows, relative to the home. */
const registered = (): string[] => {
  const folder = join(user.home, 'repos/p/.git/worktrees');
  if (!existsSync(folder)) return [];
  const places = readdirSync(folder).map((name) => readFileSync(join(folder, name, 'gitdir'), 'utf8'));
  return places.map((place) => place.slice(user.home.length + 1).replace('/.git\n', '')).sort();
};
const unregister = (refs: readonly string[] = []): Promise<unknown> => helper.unregister('p', worktree, refs);

describe('a registration goes', () => {
  it('when nothing is at its place any more, and the same worktree can be made again', async () => {
    user.sh(`rm -r ${worktree}`);
    expect(() => git(user, `git -C repos/p worktree add "$HOME/${worktree}" chat/1`)).toThrow();
    expect(await unregister()).toStrictEqual({});
    expect(registered()).toStrictEqual([other]);
    git(user, `git -C repos/p worktree add -q "$HOME/${worktree}" chat/1`);
    expect(readdirSync(user.space).sort()).toStrictEqual(['home', 'tmp']);
  });

  it.each([
    ['locked', `git -C repos/p worktree lock "$HOME/${worktree}"; rm -r ${worktree}`],
    ['with its conversation', `rm -r ${conversation}`],
    ['with all of work but the other', `mv ${other} o; rm -r work; mkdir -p ${other}; rmdir ${other}; mv o ${other}`],
    [
      'named by a relative path',
      `rm -r ${worktree}; echo "../../../../../${worktree}/.git" > repos/p/.git/worktrees/p/gitdir`,
    ],
    ['not to be written', `rm -r ${worktree}; chmod 500 repos/p/.git/worktrees/p`],
    ['there twice', `rm -r ${worktree}; cp -r repos/p/.git/worktrees/p repos/p/.git/worktrees/again`],
  ])('also one that is %s', async (name, script) => {
    git(user, script);
    expect(registered()).toHaveLength(name === 'there twice' ? 3 : 2);
    expect(await unregister()).toStrictEqual({});
    expect(registered()).toStrictEqual([other]);
  });

  it('of a tree in a scratch folder that is gone', async () => {
    await helper.scratch();
    git(user, `git -C repos/p worktree add -q "$SCRATCH/tree" -b chat/3; rm -r ${other}`);
    const all = registered();
    expect(all).toHaveLength(3);
    expect(await unregister()).toStrictEqual({});
    expect(registered()).toStrictEqual(all);
    await helper.scratch();
    expect(await unregister()).toStrictEqual({});
    expect(registered()).toStrictEqual([worktree, other]);
  });
});

describe('a registration stays', () => {
  it.each([
    ['whose worktree is there', ':'],
    ['at whose place something else is', `rm -r ${worktree}; : > ${worktree}`],
    ['whose place can’t be looked at', `rm -r ${worktree}; chmod 000 ${conversation}`],
    ['of another conversation whose folder is gone', `rm -r ${other}`],
  ])('%s', async (_name, script) => {
    user.sh(script);
    expect(await unregister()).toStrictEqual({});
    expect(registered()).toStrictEqual([worktree, other]);
  });

  it('of a folder that was moved away for a while, and works when it is back', async () => {
    user.sh(`mv ${other} aside; rm -r ${worktree}`);
    expect(await unregister()).toStrictEqual({});
    user.sh(`mv aside ${other}`);
    expect(git(user, `git -C ${other} status --porcelain --branch`)).toContain('chat/2');
  });

  it.each([
    ['that is a link', 'mv p ../real; ln -s ../real p', 'real/gitdir'],
    ['whose gitdir is a pipe', 'rm p/gitdir; mkfifo p/gitdir', 'worktrees/p/HEAD'],
    ['whose gitdir is a link', 'mv p/gitdir p/g; ln -s g p/gitdir', 'worktrees/p/HEAD'],
    ['that is closed', 'chmod 000 p', 'worktrees/p/HEAD'],
    ['in a folder that is a link', 'cd ..; mv worktrees w; ln -s w worktrees', 'w/p/gitdir'],
  ])('%s', async (_name, script, kept) => {
    user.sh(`rm -r ${worktree}; cd repos/p/.git/worktrees; ${script}`);
    expect(await unregister()).toStrictEqual({});
    expect(existsSync(join(user.home, 'repos/p/.git', kept))).toBe(true);
  });

  it.each([
    ['a link', 'mv p r; ln -s r p', 'r/.git/worktrees/p'],
    ['one whose .git is a link', 'cd p; mv .git g; ln -s g .git', 'p/g/worktrees/p'],
  ])('in a clone that is %s', async (_name, script, kept) => {
    user.sh(`rm -r ${worktree}; cd repos; ${script}`);
    expect(await unregister()).toBe('bad_target');
    expect(existsSync(join(user.home, 'repos', kept))).toBe(true);
  });
});

describe('lock files', () => {
  const locks = [
    'shallow.lock',
    'packed-refs.lock',
    'refs/heads/chat/1.lock',
    'refs/heads/chat/2.lock',
    'index.lock',
    'refs/remotes/x/ü.lock',
  ];
  const left = (): string[] => locks.filter((lock) => existsSync(join(user.home, 'repos/p/.git', lock)));

  it('that a killed git left go, of these refs only, and git works again', async () => {
    user.sh(`cd repos/p/.git; mkdir -p refs/remotes/x; touch ${locks.join(' ')}`);
    expect(left()).toStrictEqual(locks);
    expect(() => git(user, 'git -C repos/p update-ref refs/heads/chat/1 main^{tree} 2>&1')).toThrow();
    expect(await unregister(['refs/heads/chat/1', 'refs/remotes/x/ü', 'refs/none/of/them'])).toStrictEqual({});
    expect(left()).toStrictEqual(['refs/heads/chat/2.lock', 'index.lock']);
    git(user, 'git -C repos/p update-ref refs/heads/chat/1 main; git -C repos/p pack-refs --all || exit 0');
  });

  it.each([
    ['a link', 'touch x; ln -s x shallow.lock'],
    ['a pipe', 'mkfifo shallow.lock'],
    ['a folder', 'mkdir shallow.lock'],
  ])('that are none stay: %s', async (_name, script) => {
    user.sh(`cd repos/p/.git; ${script}`);
    expect(await unregister()).toStrictEqual({});
    user.sh('cd repos/p/.git; test -e shallow.lock; test ! -f shallow.lock -o -L shallow.lock');
  });

  it.each([
    ['refs', 'mv refs r; ln -s r refs', 'r/heads/chat/1.lock'],
    [
      'a folder beneath it',
      'mv refs/heads "$OUT/heads"; ln -s "$OUT/heads" refs/heads',
      '../../../../../outside/heads/chat/1.lock',
    ],
  ])('behind a link stay: %s', async (_name, script, kept) => {
    user.sh(`cd repos/p/.git; touch refs/heads/chat/1.lock; ${script}`);
    expect(await unregister(['refs/heads/chat/1'])).toStrictEqual({});
    expect(existsSync(join(user.home, 'repos/p/.git/refs/heads/chat/1.lock'))).toBe(true);
    expect(existsSync(join(user.home, 'repos/p/.git', kept))).toBe(true);
    user.sh('rm -rf "$OUT/heads"');
  });
});

describe('halves of packs', () => {
  const inPack = (script: string): string => user.sh(`cd repos/p/.git/objects/pack; ${script}`);

  it('that a killed git left go, and nothing else', async () => {
    git(user, 'git -C repos/p repack -adq');
    inPack(`
      touch .tmp-1-pack-x.pack tmp x.keep pack-tmp_; mkfifo tmp_pipe; mkdir tmp_folder; touch tmp_folder/tmp_y
      echo keep > "$OUT/f"; ln -s "$OUT/f" tmp_link; ln -s none tmp_dangling`);
    const [others, outside] = [inPack('ls -AlR'), user.tree(user.outside)];
    inPack('touch tmp_pack_Ab12 tmp_idx_x; chmod 000 tmp_idx_x; ln "$OUT/f" tmp_hard');
    expect(await unregister()).toStrictEqual({});
    expect([inPack('ls -AlR'), user.tree(user.outside)]).toStrictEqual([others, outside]);
    expect(git(user, 'rm "$OUT/f"; git -C repos/p fsck --connectivity-only')).toBe('');
  });

  it.each(['objects', 'objects/pack'])('behind a link instead of %s stay, and locks go all the same', async (name) => {
    user.sh(`
      cd repos/p/.git; touch objects/pack/tmp_pack_x shallow.lock
      mv ${name} "$OUT/there"; ln -s "$OUT/there" ${name}; test -e objects/pack/tmp_pack_x`);
    expect(await unregister()).toStrictEqual({});
    user.sh('cd repos/p/.git; test -e objects/pack/tmp_pack_x; test ! -e shallow.lock; rm -r "$OUT/there"');
  });
});
