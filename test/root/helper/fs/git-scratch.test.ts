import { spawnSync } from 'node:child_process';
import { closeSync, lstatSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { FsHelper } from '../../../support/fs-helper.ts';
import { root } from '../../../support/service.ts';
import { asUser, runToEnd } from '../../worker/support/as-worker.ts';
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

  it('is kept out though an access list lets it in', () =>
    withTmp(async (descriptor) => {
      const lists = [`${root}/dist/test/open-acl`, join(user.space, 'tmp'), String(other)];
      expect(runToEnd(asUser(uid, uid, lists)).status, 'the file system keeps access lists').toBe(0);
      expect(reaches(descriptor, 'before')).toBe(true);
      await helper.scratch({ format: 'sha1', borrows: null });
      expect(reaches(descriptor, 'after')).toBe(false);
      expect(reaches(descriptor, '.git-workflow/home/.netrc')).toBe(false);
      expect(lstatSync(join(user.space, 'tmp/.git-workflow/clean.git/config')).mode & 0o777).toBe(0o600);
    }));
});
