import { spawnSync } from 'node:child_process';
import { closeSync, lstatSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { FsHelper } from '../../../support/fs-helper.ts';
import { root } from '../../../support/service.ts';
import { asUser, runToEnd } from '../../worker/support/as-worker.ts';
import { git, makeProjects } from './support/git.ts';
import { UserSpace } from './support/user-space.ts';

const uid = 937_681;
const other = 937_685;
let user: UserSpace;
let helper: FsHelper;

beforeAll(async () => {
  user = new UserSpace(uid);
  helper = await user.helper();
});
afterEach(async () => {
  expect(await helper.reset()).toStrictEqual({});
  expect(user.tree()).toStrictEqual(user.newTree);
});
afterAll(() => user.remove());

const folder = (name: string): string => `${name} 40700 ${uid}:${uid}`;
const file = (name: string, content: string): string => `${name} 100600 ${uid}:${uid} ${content}`;
const tmpTree = (): string[] => user.tree(join(user.space, 'tmp'));
const emptyScratch = [folder('.git-workflow'), folder('.git-workflow/home')];

describe('the scratch folder', () => {
  it('is made with an empty home in it', async () => {
    expect(await helper.scratch()).toStrictEqual({});
    expect(tmpTree()).toStrictEqual(emptyScratch);
  });

  it.each([
    [
      'a tree of an earlier one',
      'mkdir -p .git-workflow/home/x .git-workflow/tree; echo evil > .git-workflow/home/.netrc',
    ],
    ['a closed one', 'mkdir -p .git-workflow/home/x; chmod 000 .git-workflow/home .git-workflow'],
    ['a file', ': > .git-workflow'],
    ['a pipe', 'mkfifo .git-workflow'],
    ['a link out', 'echo keep > "$OUT/keep"; ln -s "$OUT" .git-workflow'],
    ['a closed tmp', 'mkdir .git-workflow; : > .git-workflow/x; chmod 000 .'],
    ['a tmp that can’t be written', 'mkdir .git-workflow; : > .git-workflow/x; chmod 500 .'],
    ['a tmp for everybody', 'chmod 2777 .'],
    ['none, and no tmp', 'rmdir "$SPACE/tmp"'],
  ])('is made anew whatever was there: %s', async (_name, script) => {
    user.sh(`cd ../tmp; ${script}`);
    const outside = user.tree(user.outside);
    expect(await helper.scratch()).toStrictEqual({});
    expect(tmpTree()).toStrictEqual(emptyScratch);
    expect(user.tree()).toContain(folder('tmp'));
    expect(user.tree(user.outside)).toStrictEqual(outside);
  });

  it.each([
    ['a link', 'ln -s "$OUT" tmp'],
    ['a link to a folder of the space', 'mkdir home/d; ln -s home/d tmp'],
    ['a file', ': > tmp'],
    ['a pipe', 'mkfifo tmp'],
  ])('is refused in a tmp that is %s', async (_name, script) => {
    user.sh(`cd ..; rmdir tmp; ${script}`);
    const before = [...user.tree(), ...user.tree(user.outside)];
    expect(await helper.scratch()).toBe('workspace_broken');
    expect([...user.tree(), ...user.tree(user.outside)]).toStrictEqual(before);
  });

  it.each(['write', 'delete', 'clear', 'reset'] as const)('is removed by a %s', async (verb) => {
    await helper.scratch();
    user.sh('mkdir -p ../tmp/.git-workflow/tree/x; : > ../tmp/.git-workflow/tree/f; : > f');
    const calls = {
      write: () => helper.writeFile('f', 'x'),
      delete: () => helper.delete('f'),
      clear: () => helper.clear(),
      reset: () => helper.reset(),
    };
    expect(await calls[verb]()).toBeTypeOf('object');
    expect(tmpTree()).toStrictEqual([]);
  });

  it('is left alone by a look, and what else is in tmp by everything but a reset', async () => {
    user.sh(': > ../tmp/own; chmod 600 ../tmp/own');
    await helper.scratch();
    await helper.list('');
    await helper.repository('p');
    expect(tmpTree()).toStrictEqual([...emptyScratch, file('own', '')]);
    expect(await helper.clear()).toStrictEqual({});
    expect(tmpTree()).toStrictEqual([file('own', '')]);
  });
});

describe('another user’s process that was handed a descriptor of tmp', () => {
  /** Whether it can make a file beneath it. */
  const reaches = (descriptor: number, path: string): boolean => {
    const [program = '', ...args] = asUser(other, other, ['sh', '-c', `: > /proc/self/fd/3/${path}`]);
    return spawnSync(program, args, { stdio: ['ignore', 'ignore', 'ignore', descriptor] }).status === 0;
  };
  const withTmp = async (act: (descriptor: number) => Promise<void>): Promise<void> => {
    const descriptor = openSync(join(user.space, 'tmp'), 'r');
    try {
      await act(descriptor);
    } finally {
      closeSync(descriptor);
    }
  };

  it('is kept out by the mode', () =>
    withTmp(async (descriptor) => {
      user.sh('chmod 0777 ../tmp');
      expect(reaches(descriptor, 'before')).toBe(true);
      await helper.scratch();
      expect(reaches(descriptor, 'after')).toBe(false);
      expect(reaches(descriptor, '.git-workflow/home/.netrc')).toBe(false);
    }));

  it('is kept out though an access list lets it in', ({ skip }) =>
    withTmp(async (descriptor) => {
      const lists = [`${root}/dist/test/open-acl`, join(user.space, 'tmp'), String(other)];
      const { status } = runToEnd(asUser(uid, uid, lists));
      // Without access lists nobody can be let in by one.
      if (status === 2) skip();
      expect(status).toBe(0);
      expect(reaches(descriptor, 'before')).toBe(true);
      await helper.scratch({ format: 'sha1', borrows: null });
      expect(reaches(descriptor, 'after')).toBe(false);
      expect(reaches(descriptor, '.git-workflow/home/.netrc')).toBe(false);
      expect(lstatSync(join(user.space, 'tmp/.git-workflow/clean.git/config')).mode & 0o777).toBe(0o600);
    }));
});

describe('the clean repository', () => {
  const clean = join('.git-workflow', 'clean.git');
  const path = (name: string): string => join(user.space, 'tmp', clean, name);

  it('has exactly the server’s configuration', async () => {
    expect(await helper.scratch({ format: 'sha1', borrows: null })).toStrictEqual({});
    const seen = git(user, 'HOME="$SCRATCH/home" git --git-dir "$SCRATCH/clean.git" config --list');
    expect(seen).toBe('core.repositoryformatversion=0\ncore.bare=true\n');
    expect(tmpTree().filter((line) => !line.includes(' 40700 '))).toHaveLength(2);
  });

  it('of SHA-256 too', async () => {
    expect(await helper.scratch({ format: 'sha256', borrows: null })).toStrictEqual({});
    git(user, 'git init -q -b main --object-format=sha256 repos/p; git -C repos/p commit -q --allow-empty -m x');
    const seen = git(
      user,
      `
      cd "$SCRATCH/clean.git"; git --git-dir . fetch -q --depth 1 "file://$HOME/repos/p" main
      git --git-dir . rev-parse FETCH_HEAD; git -C "$HOME/repos/p" rev-parse main`,
    ).split('\n');
    expect(seen[0]).toMatch(/^[0-9a-f]{64}$/);
    expect(seen[0]).toBe(seen[1]);
  });

  it('is one that git fetches into', async () => {
    makeProjects(user, 'p');
    await helper.scratch({ format: 'sha1', borrows: null });
    const seen = git(
      user,
      `
      export HOME="$SCRATCH/home"; cd "$SCRATCH/clean.git"
      git --git-dir . fetch -q --depth 1 --no-tags "file://$SPACE/home/repos/p" main:refs/heads/base
      git --git-dir . rev-parse refs/heads/base; git -C "$SPACE/home/repos/p" rev-parse main; git --git-dir . fsck`,
    );
    const [got, wanted] = seen.split('\n');
    expect(got).toMatch(/^[0-9a-f]{40}$/);
    expect(got).toBe(wanted);
  });

  it('borrows objects, and pushes them though upstream has moved on, with the shallow ends only', async () => {
    git(
      user,
      `
      git init -q -b main --bare "$OUT/up.git"; git clone -q "$OUT/up.git" "$OUT/elsewhere" 2>/dev/null
      for i in 1 2; do git -C "$OUT/elsewhere" commit -q --allow-empty -m $i; done
      git -C "$OUT/elsewhere" push -q origin HEAD:main
      git clone -q --depth 1 "file://$OUT/up.git" repos/p
      git -C "$OUT/elsewhere" commit -q --allow-empty -m 3; git -C "$OUT/elsewhere" push -q origin HEAD:main
      git -C repos/p commit -q --allow-empty -m own`,
    );
    expect(await helper.scratch({ format: 'sha1', borrows: 'p' })).toStrictEqual({});
    expect(readFileSync(path('objects/info/alternates'), 'utf8')).toBe(`${user.home}/repos/p/.git/objects\n`);
    expect(readFileSync(path('shallow'))).toStrictEqual(readFileSync(join(user.home, 'repos/p/.git/shallow')));
    const push = `
      commit=$(git -C repos/p rev-parse HEAD)
      HOME="$SCRATCH/home" git --git-dir "$SCRATCH/clean.git" push -q "file://$OUT/up.git" $commit:refs/heads/chat/1`;
    const refs = () => git(user, 'git --git-dir "$OUT/up.git" for-each-ref --format="%(refname)"');
    git(user, 'mv "$SCRATCH/clean.git/shallow" "$SCRATCH/aside"');
    expect(() => git(user, push)).toThrow();
    expect(refs()).toBe('refs/heads/main\n');
    git(user, `mv "$SCRATCH/aside" "$SCRATCH/clean.git/shallow"; ${push}`);
    expect(refs()).toBe('refs/heads/chat/1\nrefs/heads/main\n');
    expect(git(user, 'git --git-dir "$OUT/up.git" log --format=%s refs/heads/chat/1')).toBe('own\n2\n1\n');
    user.sh('rm -rf "$OUT/up.git" "$OUT/elsewhere"');
  });

  it('has no shallow ends of a clone with its whole history, and finds the clone behind a link', async () => {
    makeProjects(user, 'p');
    user.sh('mv repos real; ln -s real repos');
    expect(await helper.scratch({ format: 'sha1', borrows: 'p' })).toStrictEqual({});
    expect(readFileSync(path('objects/info/alternates'), 'utf8')).toBe(`${user.home}/real/p/.git/objects\n`);
    expect(tmpTree().join()).not.toContain('shallow');
  });

  const id = 'a'.repeat(40);
  const plant = (text: string): void => writeFileSync(join(user.home, 'repos/p/.git/shallow'), text);

  it('takes ids in any number that fits, the last without an end too', async () => {
    makeProjects(user, 'p');
    for (const text of ['', id, `${id}\n`.repeat(25_000)]) {
      plant(text);
      expect(await helper.scratch({ format: 'sha1', borrows: 'p' })).toStrictEqual({});
      expect(readFileSync(path('shallow'), 'utf8')).toBe(text);
    }
  });

  it.each([
    ['a word', 'x\n'],
    ['an id and more', `${id} x\n`],
    ['upper case', `${id.toUpperCase()}\n`],
    ['an empty line', `${id}\n\n${id}\n`],
    ['ids of another format', `${'a'.repeat(64)}\n`],
    ['too short an id', `${'a'.repeat(39)}\n`],
    ['two ids in a line', `${id}${id}\n`],
    ['a carriage return', `${id}\r\n`],
    ['2 MiB', `${id}\n`.repeat(52_000)],
  ])('is refused with shallow ends that are none: %s', async (_name, text) => {
    makeProjects(user, 'p');
    plant(text);
    expect(await helper.scratch({ format: 'sha1', borrows: 'p' })).toBe('bad_target');
    expect(tmpTree().join()).not.toContain('clean.git');
  });

  it.each([
    ['shallow ends from a pipe', 'mkfifo shallow'],
    ['shallow ends behind a link', `echo ${id} > "$OUT/ids"; ln -s "$OUT/ids" shallow`],
    ['shallow ends that are a folder', 'mkdir shallow'],
    ['no objects', 'rm -rf objects', 'not_found'],
    ['objects behind a link', 'mv objects o; ln -s o objects'],
    ['objects that are a pipe', 'rm -rf objects; mkfifo objects'],
    ['a .git that is a link', 'cd ..; mv .git g; ln -s g .git'],
    ['a .git that is a file', 'cd ..; rm -rf .git; echo "gitdir: $HOME/x" > .git'],
    ['a clone that is a link', 'cd ../..; mv p r; ln -s r p'],
    ['no clone', 'cd ../..; rm -rf p', 'not_found'],
  ])('is refused for a clone with %s', async (_name, script, code = 'bad_target') => {
    makeProjects(user, 'p');
    user.sh(`cd repos/p/.git; ${script}`);
    expect(await helper.scratch({ format: 'sha1', borrows: 'p' })).toBe(code);
    expect(tmpTree().join()).not.toContain('clean.git');
    expect(await helper.clear()).toStrictEqual({});
    expect(tmpTree()).toStrictEqual([]);
  });
});
