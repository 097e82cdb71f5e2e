import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { FsHelper } from '../../../support/fs-helper.ts';
import { git, makeProjects } from './support/git.ts';
import { UserSpace } from './support/user-space.ts';

const uid = 937_686;
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

const tmpTree = (): string[] => user.tree(join(user.space, 'tmp'));
const inScratch = (name: string): string => join(user.space, 'tmp/.git-workflow', name);
const borrows = () => helper.scratch({ format: 'sha1', borrows: 'p' });

/** Writes the shallow ends of the clone. */
const plant = (text: string): void => writeFileSync(join(user.home, 'repos/p/.git/shallow'), text);
const id = 'a'.repeat(40);

describe('the clean repository', () => {
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
});

/** What a push does: what is borrowed is gathered into the clean repository, and goes on from there. */
const gather = `
  export HOME="$SCRATCH/home"; commit=$(git -C "$SPACE/home/repos/p" rev-parse HEAD); cd "$SCRATCH"
  git --git-dir clean.git fetch -q --update-shallow --no-tags --no-write-fetch-head borrowed.git $commit:refs/heads/base`;

describe('the repository that borrows', () => {
  it('lends objects with the shallow ends only, and what was gathered is pushed though upstream has moved on', async () => {
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
    expect(await borrows()).toStrictEqual({});
    expect(readFileSync(inScratch('borrowed.git/objects/info/alternates'), 'utf8')).toBe(
      `${user.home}/repos/p/.git/objects\n`,
    );
    expect(readFileSync(inScratch('borrowed.git/shallow'))).toStrictEqual(
      readFileSync(join(user.home, 'repos/p/.git/shallow')),
    );
    git(user, 'mv "$SCRATCH/borrowed.git/shallow" "$SCRATCH/aside"');
    expect(() => git(user, gather)).toThrow();
    git(user, 'mv "$SCRATCH/aside" "$SCRATCH/borrowed.git/shallow"');
    git(user, `${gather}; rm -r borrowed.git; git --git-dir clean.git push -q "$OUT/up.git" $commit:refs/heads/chat/1`);
    expect(git(user, 'git --git-dir "$OUT/up.git" for-each-ref --format="%(refname)"')).toBe(
      'refs/heads/chat/1\nrefs/heads/main\n',
    );
    expect(git(user, 'git --git-dir "$OUT/up.git" log --format=%s refs/heads/chat/1')).toBe('own\n2\n1\n');
    user.sh('rm -rf "$OUT/up.git" "$OUT/elsewhere"');
  });

  it('is another one than the clean one, which has nothing of the user’s', async () => {
    makeProjects(user, 'p');
    expect(await helper.scratch({ format: 'sha1', borrows: null })).toStrictEqual({});
    const alone = user.tree(inScratch('clean.git'));
    expect(tmpTree().join()).not.toContain('borrowed.git');
    plant('');
    expect(await borrows()).toStrictEqual({});
    expect(user.tree(inScratch('clean.git'))).toStrictEqual(alone);
    const more = user.tree(inScratch('borrowed.git')).filter((line) => !alone.includes(line));
    expect(more.map((line) => line.split(' ')[0])).toStrictEqual(['objects/info/alternates', 'shallow']);
  });

  it('has no shallow ends of a clone with its whole history', async () => {
    makeProjects(user, 'p');
    expect(await borrows()).toStrictEqual({});
    git(user, `${gather}; git --git-dir clean.git fsck`);
    expect(tmpTree().join()).not.toContain('shallow');
  });

  it('lends nothing that isn’t what its name says', async () => {
    makeProjects(user, 'p');
    git(
      user,
      `
      cd repos/p; old=$(git rev-parse HEAD); git commit -q --allow-empty -m own
      other=$(git commit-tree -m other HEAD^{tree}); place() { echo .git/objects/$(echo $1 | sed 's,^..,&/,'); }
      cp -f $(place $other) $(place $old)`,
    );
    expect(await borrows()).toStrictEqual({});
    // A git that looks there itself believes it.
    expect(git(user, 'git -C repos/p log --format=%s HEAD')).toBe('own\nother\n');
    expect(() => git(user, gather)).toThrow();
  });

  it('takes ids in any number that fits, the last without an end too', async () => {
    makeProjects(user, 'p');
    for (const text of ['', id, `${id}\n`.repeat(25_000)]) {
      plant(text);
      expect(await borrows()).toStrictEqual({});
      expect(readFileSync(inScratch('borrowed.git/shallow'), 'utf8')).toBe(text);
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
    expect(await borrows()).toBe('bad_target');
    expect(tmpTree().join()).not.toContain('borrowed.git');
  });

  it.each([
    ['shallow ends from a pipe', 'mkfifo shallow'],
    ['shallow ends behind a link', `echo ${id} > "$OUT/ids"; ln -s "$OUT/ids" shallow`],
    ['shallow ends that are a folder', 'mkdir shallow'],
    ['no objects', 'rm -rf objects', 'file_failed'],
    ['objects behind a link', 'mv objects o; ln -s o objects'],
    ['objects that are a pipe', 'rm -rf objects; mkfifo objects'],
    ['a .git that is a link', 'cd ..; mv .git g; ln -s g .git'],
    ['a .git that is a file', 'cd ..; rm -rf .git; echo "gitdir: $HOME/x" > .git'],
    ['a clone that is a link', 'cd ../..; mv p r; ln -s r p'],
    ['no clone', 'cd ../..; rm -rf p', 'file_failed'],
  ])('is refused for a clone with %s', async (_name, script, code = 'bad_target') => {
    makeProjects(user, 'p');
    user.sh(`cd repos/p/.git; ${script}`);
    expect(await borrows()).toBe(code);
    expect(tmpTree().join()).not.toContain('borrowed.git');
    expect(await helper.clear()).toStrictEqual({});
    expect(tmpTree()).toStrictEqual([]);
  });
});
