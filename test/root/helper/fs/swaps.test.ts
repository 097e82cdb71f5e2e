import { lstatSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { FsHelper } from '../../../support/fs-helper.ts';
import { root } from '../../../support/service.ts';
import { UserSpace } from './support/user-space.ts';

const uid = 937_630;
/** How often each verb is tried while names are swapped beneath it. */
const rounds = 1_000;
let user: UserSpace;
let helper: FsHelper;

beforeAll(async () => {
  user = new UserSpace(uid);
  helper = await user.helper();
});
beforeEach(() => {
  user.sh('echo outside > "$OUT/f"; mkdir d; echo inside > d/f; ln -s ../../outside l; echo inside > f; ln -s d/f k');
  user.sh('mkdir -p "$OUT/deep/er"; echo outside > "$OUT/deep/er/f"');
});
afterEach(async () => {
  user.stop();
  await helper.reset();
  expect(user.tree()).toStrictEqual(user.newTree);
});
afterAll(() => user.remove());

const swapping = (a: string, b: string) => user.start([`${root}/dist/test/swap`, a, b]);

/** On a busy machine the names may stand still for many rounds: none that is to be seen is given up before this, ms. */
const patienceMs = 60_000;

/** Answers by how often they came: in so many rounds, and in more of them while one of the `wanted` is missing. */
const counted = async (
  wanted: readonly string[],
  act: () => Promise<unknown>,
  times = rounds,
): Promise<Record<string, number>> => {
  const seen: Record<string, number> = {};
  const end = performance.now() + patienceMs;
  const isSeen = (): boolean => wanted.every((key) => seen[key] !== undefined) || performance.now() > end;
  for (let round = 0; round < times || !isSeen(); round += 1) {
    const answer = await act();
    const { content } = (typeof answer === 'object' ? answer : {}) as { content?: string };
    const key = typeof answer === 'string' ? answer : (content?.trim() ?? 'done');
    seen[key] = (seen[key] ?? 0) + 1;
  }
  return seen;
};

describe('while a folder and a link that leads outside change places', () => {
  it('a program that looks first and opens then is fooled', async () => {
    await swapping('d', 'l');
    const wanted = ['inside', 'outside', 'refused'];
    const look = async () => {
      if (lstatSync(join(user.home, 'd')).isSymbolicLink()) return 'refused';
      return { content: readFileSync(join(user.home, 'd/f'), 'utf8') };
    };
    expect(Object.keys(await counted(wanted, look, 20_000)).sort()).toStrictEqual(wanted);
  });

  it('read gives what is inside, or nothing', async () => {
    await swapping('d', 'l');
    const wanted = ['inside', 'outside_workspace'];
    expect(Object.keys(await counted(wanted, () => helper.read('d/f'))).sort()).toStrictEqual(wanted);
  });

  it('list shows the folder, or nothing', async () => {
    await swapping('d', 'l');
    const wanted = ['inside', 'symlink'];
    const look = async () => {
      const answer = await helper.list('d');
      return typeof answer === 'object'
        ? { content: JSON.stringify(answer).includes('deep') ? 'outside' : 'inside' }
        : answer;
    };
    expect(Object.keys(await counted(wanted, look)).sort()).toStrictEqual(wanted);
  });

  it('write and delete change nothing outside', async () => {
    const before = user.tree(user.outside);
    await swapping('d', 'l');
    const writes = ['done', 'outside_workspace'];
    expect(Object.keys(await counted(writes, () => helper.writeFile('d/new', 'x'))).sort()).toStrictEqual(writes);
    const deletes = ['done', 'not_found', 'outside_workspace'];
    expect(Object.keys(await counted(deletes, () => helper.delete('d/f'))).sort()).toStrictEqual(deletes);
    expect(user.tree(user.outside)).toStrictEqual(before);
  });
});

describe('while a file and a link change places', () => {
  it('write replaces the one or the other, and never writes through the link', async () => {
    user.sh('ln -s ../../outside/f out');
    const before = user.tree(user.outside);
    await swapping('f', 'out');
    const seen = await counted(['done'], () => helper.writeFile('f', 'x'));
    expect(Object.keys(seen)).toContain('done');
    expect(Object.keys(seen).filter((answer) => !['done', 'symlink'].includes(answer))).toStrictEqual([]);
    expect(user.tree(user.outside)).toStrictEqual(before);
  });
});

describe('while things change places in a tree that is being deleted', () => {
  it('nothing outside is deleted', async () => {
    const before = user.tree(user.outside);
    for (let round = 0; round < 8; round += 1) {
      user.sh('mkdir t; for i in $(seq 15); do mkdir t/$i; : > t/$i/f; done; mkdir t/x; ln -s ../../../outside t/y');
      await swapping('t/x', 't/y');
      expect(await helper.delete('t')).toStrictEqual({});
      user.stop();
    }
    expect(user.tree(user.outside)).toStrictEqual(before);
  });
});
