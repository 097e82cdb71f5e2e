import { lstatSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Answer } from './http.ts';
import { processesOf } from './processes.ts';
import type { Service } from './service.ts';
import { homeOf, uidOf } from './user.ts';
import { eventually } from './wait.ts';

/** A run that is under way and goes on until it is released. */
export interface HeldRun {
  /** pid of the process that waits. */
  readonly pid: number;
  /** The answer, once it is released. */
  readonly answer: Promise<Answer>;
  release(): void;
}

let made = 0;

/** Starts a run that waits at a pipe in the user's home, and resolves when it is there. Needs the tool `sh`. */
export const holdRun = async (
  service: Service,
  user: number,
  more: Readonly<Record<string, unknown>> = {},
): Promise<HeldRun> => {
  made += 1;
  const name = `gate-${process.pid}-${made}`;
  const gate = join(homeOf(service, user), name);
  const answer = service.exec(user, 'sh', ['-c', 'mkfifo "$HOME/$1" && exec cat "$HOME/$1"', 'sh', name], more);
  const waiting = () => processesOf(uidOf(user)).find(({ command }) => command === `cat ${gate}`);
  const { pid } = await eventually(`the run of ${user} waits at its pipe`, waiting);
  if (!lstatSync(gate).isFIFO()) throw new Error('the pipe is no pipe');
  // Opening it for writing lets the reader in, closing it ends what there is to read.
  return { pid, answer, release: () => writeFileSync(gate, '') };
};
