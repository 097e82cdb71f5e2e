import { spawn } from 'node:child_process';
import type { FsHelper } from '../../../../support/fs-helper.ts';
import type { UserSpace } from './user-space.ts';

/**
 * A helper that is killed when it enters a system call of one of these for the `nth` time from here on: that call does
 * not happen. Names with "?" need not exist on every architecture.
 */
const doomed = async (user: UserSpace, calls: string, nth: number): Promise<FsHelper> => {
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
export const allSteps = [
  'openat',
  'write,pwrite64',
  'fchmod,?chmod,fchmodat',
  '?rename,renameat,renameat2',
  '?unlink,?rmdir,unlinkat',
  '?mkdir,mkdirat',
];

/** Kills an operation at each of its steps in turn; says how often. */
export const atEachStep = async (
  user: UserSpace,
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
      const helper = await doomed(user, calls, nth);
      const answer = await act(helper);
      await helper.kill();
      if (answer !== undefined) break;
      kills += 1;
      await check();
    }
  }
  return kills;
};
