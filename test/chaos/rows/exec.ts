import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { exec } from '../../../protocol/operations/exec.ts';
import type { ChaosRow, Effect, EffectPlace } from './row.ts';

/** `b` when the effect begins, `d` when it is complete; each run appends its own. */
export const scripts = {
  oneStep: 'printf bd >> "$1" && echo "$1"',
  twoSteps: 'printf b >> "$1" && ls / > /dev/null && printf d >> "$1" && echo "$1"',
  held: 'mkfifo "$1.hold" && printf b >> "$1" && read -r _ < "$1.hold"; printf d >> "$1"',
};

/** All of a file; empty when there is none. */
export const textAt = (path: string): string => {
  try {
    return readFileSync(path, 'latin1');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
};

/** What the scripts have left. */
export const lettersAt = ({ home, canary }: EffectPlace): Effect => {
  const letters = textAt(join(home, canary));
  return { begun: letters.split('b').length - 1, completed: letters.split('d').length - 1 };
};

const execRow = (what: string, script: keyof typeof scripts): ChaosRow => ({
  what,
  holds: true,
  strikers: ['gateway', 'worker', 'strace', 'harness'],
  route: exec.route,
  body: ({ user, canary }, held) => ({
    user,
    tool: 'sh',
    args: ['-c', scripts[held ? 'held' : script], 'sh', canary],
  }),
  effect: lettersAt,
  succeeded: (body) => body['exitCode'] === 0 && body['timedOut'] === false,
});

export const execRows: readonly ChaosRow[] = [
  execRow('exec in one step', 'oneStep'),
  execRow('exec in two steps', 'twoSteps'),
];
