import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { FsHelper } from '../../../support/fs-helper.ts';
import { allSteps, atEachStep } from './support/doomed.ts';
import { UserSpace } from './support/user-space.ts';

const uid = 937_660;
let user: UserSpace;
let next: FsHelper;

beforeAll(async () => {
  user = new UserSpace(uid);
  next = await user.helper();
});
beforeEach(async () => {
  expect(await next.reset()).toStrictEqual({});
});
afterAll(() => user.remove());

describe('a helper that is killed', () => {
  it('at any step of a write: old or new, and no stray after the next use, wherever that is', async () => {
    const seen = new Set<string>();
    const kills = await atEachStep(
      user,
      allSteps,
      () => next.writeFile('repos/f', 'old'),
      (helper) => helper.writeFile('repos/f', 'new'),
      async () => {
        seen.add(`${readFileSync(join(user.home, 'repos/f'), 'utf8')} ${existsSync(join(user.space, '.unfinished'))}`);
        expect(await next.writeFile('work/other', 'x')).toStrictEqual({ size: 1 });
        expect(readdirSync(join(user.home, 'repos'))).toStrictEqual(['f']);
        expect(readdirSync(user.space).sort()).toStrictEqual(['home', 'tmp']);
      },
    );
    expect(kills).toBeGreaterThan(5);
    // It was killed before, within, and after the change.
    expect([...seen].sort()).toStrictEqual(['new false', 'old false', 'old true']);
  });

  it('at any step of a delete: the folder is there whole, or gone, and no stray after the next use', async () => {
    const seen = new Set<string>();
    await atEachStep(
      user,
      allSteps.slice(1),
      async () => {
        user.sh('mkdir -p t/a; : > t/a/f; : > t/g');
      },
      (helper) => helper.delete('t'),
      async () => {
        const left = existsSync(join(user.home, 't')) ? user.tree(join(user.home, 't')).length : 0;
        seen.add(`${left} ${existsSync(join(user.space, '.trash'))}`);
        await next.writeFile('work/other', 'x');
        expect(readdirSync(user.space).sort()).toStrictEqual(['home', 'tmp']);
        await next.delete('t');
      },
    );
    expect([...seen].sort()).toStrictEqual(['0 false', '0 true', '3 false', '3 true']);
  });

  it('between the steps of a reset: the next one goes on', async () => {
    const seen = new Set<string>();
    await atEachStep(
      user,
      // Its moves and its makings: what a reset consists of.
      allSteps.filter((calls) => /rename|mkdir/.test(calls)),
      async () => {
        user.sh('mkdir -p t/a; : > t/a/f; : > ../x');
      },
      (helper) => helper.reset(),
      async () => {
        seen.add(existsSync(user.home) ? 'a home' : 'none');
        expect(await next.reset()).toStrictEqual({});
        expect(user.tree()).toStrictEqual(user.newTree);
      },
    );
    expect([...seen].sort()).toStrictEqual(['a home', 'none']);
  });
});
