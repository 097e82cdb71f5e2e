import { closeSync, constants, lstatSync, openSync } from 'node:fs';
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

/**
 * Lets the reader of a pipe in, and ends what there is to read. Waits for no reader that never comes: that would stop
 * this process for good, and its limits on time with it.
 */
const openGate = (gate: string): void => {
  const until = performance.now() + 15_000;
  for (;;) {
    try {
      closeSync(openSync(gate, constants.O_WRONLY | constants.O_NONBLOCK));
      return;
    } catch (error) {
      // The program is there already, and may not have come to its open(2).
      if ((error as NodeJS.ErrnoException).code !== 'ENXIO' || performance.now() > until) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
};

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
  return { pid, answer, release: () => openGate(gate) };
};
