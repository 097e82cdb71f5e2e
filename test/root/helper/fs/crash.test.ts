import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { FsHelper } from '../../../support/fs-helper.ts';
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

/**
 * A helper that is killed when it enters a system call of one of these for the `nth` time from here on: that call does
 * not happen. Names with "?" need not exist on every architecture.
 */
const doomed = async (calls: string, nth: number): Promise<FsHelper> => {
  const helper = await user.helper();
  const inject = `--inject=${calls}:signal=SIGKILL:when=${nth}`;
  const tracer = spawn('strace', ['-p', String(helper.pid), '-o', '/dev/null', '-e', `trace=${calls}`, inject], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  await new Promise<void>((resolve, reject) => {
    tracer.stderr?.on('data', (chunk: Buffer) => {
      if (chunk.toString().includes('attached')) resolve();
    });
    tracer.once('exit', () => reject(new Error('strace did not attach')));
  });
  return helper;
};

/** The system calls that change something, and the one that answers. */
const allSteps = [
  'openat',
  'write,pwrite64',
  'fchmod,?chmod,fchmodat',
  '?rename,renameat,renameat2',
  '?unlink,?rmdir,unlinkat',
  '?mkdir,mkdirat',
];

/** Kills an operation at each of its steps in turn; says how often. */
const atEachStep = async (
  steps: readonly string[],
  prepare: () => Promise<unknown>,
  act: (helper: FsHelper) => Promise<unknown>,
  check: () => Promise<void>,
): Promise<number> => {
  let kills = 0;
  for (const calls of steps) {
    for (let nth = 1; ; nth += 1) {
      if (nth > 30) throw new Error('it never came to its end');
      await prepare();
      const helper = await doomed(calls, nth);
      const answer = await act(helper);
      await helper.kill();
      if (answer !== undefined) break;
      kills += 1;
      await check();
    }
  }
  return kills;
};

describe('a helper that is killed', () => {
  it('at any step of a write: old or new, and no stray after the next use, wherever that is', async () => {
    const seen = new Set<string>();
    const kills = await atEachStep(
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
