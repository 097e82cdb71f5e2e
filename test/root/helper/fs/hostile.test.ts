import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { FsHelper } from '../../../support/fs-helper.ts';
import { root } from '../../../support/service.ts';
import { type HostileTree, hostileTrees, otherTrees } from './support/hostile-trees.ts';
import { UserSpace } from './support/user-space.ts';

const uid = 937_620;
let user: UserSpace;
let helper: FsHelper;

beforeAll(async () => {
  user = new UserSpace(uid);
  helper = await user.helper();
});
afterEach(async () => {
  expect(await helper.reset()).toStrictEqual({});
  expect(user.tree()).toStrictEqual(user.newTree);
  user.sh('rm -rf "$OUT"/*');
});
afterAll(() => user.remove());

const plant = (tree: Omit<HostileTree, 'naive'>): { path: string; before: string[] } => {
  user.sh('echo planted-secret > "$OUT/secret"');
  user.sh(tree.build);
  return { path: tree.path.replace('$OUT', user.outside), before: user.tree(user.outside) };
};

/** What a careless program does: it looks at the text of the path, and lets the kernel walk. */
const naive = (path: string): string => {
  if (path.startsWith('/') || path.startsWith('..')) throw new Error('even that sees it');
  const whole = join(user.home, '.').concat('/', path);
  try {
    return readFileSync(whole, 'utf8');
  } catch {
    return readdirSync(whole).join('\n');
  }
};

/** Every verb once; deleting last, as the only one that may change something. */
const answers = async (path: string) => {
  const told = (answer: unknown): unknown => (typeof answer === 'string' ? answer : JSON.stringify(answer));
  const list = told(await helper.list(path));
  const read = told(await helper.read(path));
  const write = told(await helper.writeFile(path, 'overwritten'));
  const deleted = await helper.delete(path);
  return { list, read, write, delete: typeof deleted === 'string' ? deleted : 'deleted' };
};

describe('no verb is led out of the home by', () => {
  it.each(hostileTrees)('$name', async (tree) => {
    const { path, before } = plant(tree);
    expect(naive(path)).toContain(tree.naive === 'secret' ? 'planted-secret' : 'secret');
    expect(await answers(path)).toStrictEqual(tree.answers);
    expect(user.tree(user.outside)).toStrictEqual(before);
    expect(before.join()).toContain('planted-secret');
  });

  it('a dangling link to write through', async () => {
    user.sh('ln -s ../../outside/new l');
    writeFileSync(join(user.home, 'l'), 'by a careless program');
    expect(user.tree(user.outside).join()).toContain('careless');
    user.sh('rm "$OUT/new"');
    expect(await helper.writeFile('l', 'x')).toBe('symlink');
    expect(user.tree(user.outside)).toStrictEqual([]);
  });
});

describe('every verb tells the same of', () => {
  it.each(otherTrees)('$name', async (tree) => {
    const { path, before } = plant(tree);
    expect(await answers(path)).toStrictEqual(tree.answers);
    expect(user.tree(user.outside)).toStrictEqual(before);
  });
});

describe('links in the middle that stay inside are followed', () => {
  it.each([
    ['one', 'ln -s d m', 'm/f'],
    ['to a folder deeper down', 'mkdir -p a/b; ln -s ../../d a/b/m', 'a/b/m/f'],
    ['one with dots and slashes', 'ln -s .//./d/./ m', 'm/f'],
    ['a chain of 40', `ln -s d l0; for i in $(seq 39); do ln -s l$((i-1)) l$i; done`, 'l39/f'],
    ['up to the home itself and down again', 'mkdir a; ln -s ../../home/../d a/m; rm a/m; ln -s ../d a/m', 'a/m/f'],
    ['".." behind a link: the parent of where it leads', 'mkdir -p a/b; ln -s a/b m; ln -s m/../../d n', 'n/f'],
    [
      'with a name that is no UTF-8',
      'x=$(printf "\\377"); mkdir "$x"; ln -s "../d" "$x/m"; ln -s "$x" k; ln -s k/m m',
      'm/f',
    ],
  ])('%s', async (_name, build, path) => {
    user.sh(`mkdir d; echo inside > d/f; ${build}`);
    expect(await helper.read(path)).toMatchObject({ content: 'inside\n' });
    expect(await helper.writeFile(path, 'new')).toStrictEqual({ size: 3 });
    expect(readFileSync(join(user.home, 'd/f'), 'utf8')).toBe('new');
    expect(await helper.delete(path)).toStrictEqual({});
    expect(readdirSync(join(user.home, 'd'))).toStrictEqual([]);
  });
});

describe('paths longer than PATH_MAX', () => {
  it('are walked like any other', async () => {
    user.sh(`exec ${root}/dist/test/deep 31 700`);
    const path = `${`${'d'.repeat(200)}/`.repeat(30)}f`;
    expect(path.length).toBeGreaterThan(4096);
    expect(() => readFileSync(join(user.home, path))).toThrow('ENAMETOOLONG');
    expect(await helper.read(path)).toMatchObject({ content: '' });
    expect(await helper.writeFile(path, 'new')).toStrictEqual({ size: 3 });
    expect(await helper.list(path.slice(0, -2))).toMatchObject({ entries: [{ kind: 'dir' }, { name: 'f', size: 3 }] });
    expect(await helper.delete(path)).toStrictEqual({});
  });
});
