import { spawnSync } from 'node:child_process';
import { mkdirSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { root } from '../support/service.ts';
import type { Sample } from './statistics.ts';

const source = fileURLToPath(new URL('floor.c', import.meta.url));
const program = `${root}/dist/bench/floor`;

const compile = (...flags: readonly string[]): boolean =>
  spawnSync('cc', ['-std=gnu17', '-O2', '-Wall', '-Wextra', '-Werror', ...flags, source, '-o', program]).status === 0;

/** Compiles the native floor, static where the C library allows it: its fork is then the cheapest. */
export const buildFloor = (): void => {
  mkdirSync(`${root}/dist/bench`, { recursive: true });
  const built = statSync(program, { throwIfNoEntry: false });
  if (built !== undefined && built.mtimeMs > statSync(source).mtimeMs) return;
  if (!compile('-static') && !compile()) throw new Error('test/bench/floor.c does not compile');
};

/** Runs a command so many times with nothing but fork, exec and two pipes. */
export const floor = (count: number, ...command: readonly string[]): Sample => {
  const { status, stdout } = spawnSync(program, [String(count), ...command], {
    encoding: 'utf8',
    env: { PATH: '/usr/bin:/bin', LANG: 'C.UTF-8', HOME: '/nonexistent' },
  });
  if (status !== 0) throw new Error(`the floor could not run ${command[0]}`);
  const micros = stdout.trim().split('\n').map(Number);
  return { micros, seconds: micros.reduce((sum, value) => sum + value, 0) / 1e6 };
};
