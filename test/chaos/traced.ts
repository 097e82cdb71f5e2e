import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '../support/wait.ts';
import type { Point } from './points.ts';

/** strace(1) at a spawner: kills the first process that makes a certain system call, before it is carried out. */
export class Traced {
  readonly #process: ChildProcess;
  readonly #log: string;
  #said = '';

  private constructor(spawner: number, point: Point) {
    const [, call = ''] = point.split('-');
    this.#log = join(tmpdir(), `runner-chaos-strace-${spawner}`);
    const follow = point.startsWith('supervisor') ? ['-f'] : [];
    const args = [...follow, '-o', this.#log, '-e', `trace=${call}`, '-e', `inject=${call}:signal=KILL:when=1`];
    this.#process = spawn('strace', [...args, '-p', String(spawner)], { stdio: ['ignore', 'ignore', 'pipe'] });
    this.#process.stderr?.on('data', (text: Buffer) => {
      this.#said += text.toString();
    });
  }

  /** Resolves when it is attached. */
  static async at(spawner: number, point: Point): Promise<Traced> {
    const traced = new Traced(spawner, point);
    await eventually('strace is attached', () => traced.#said.includes('attached'));
    return traced;
  }

  /** pid of what it killed. An answer may come before strace has written that down, so it is given some time, ms. */
  async killed(withinMs: number): Promise<number | undefined> {
    const seen = () => /^(\d+)? *\+\+\+ killed by SIGKILL/m.exec(readFileSync(this.#log, 'latin1'));
    const line = await eventually('strace tells of its kill', () => seen() ?? false, withinMs).catch(() => undefined);
    return line === undefined ? undefined : Number(line[1] ?? 0);
  }

  /** Lets go of everything. */
  async end(): Promise<void> {
    if (this.#process.exitCode === null) {
      this.#process.kill('SIGINT');
      await eventually('strace is gone', () => this.#process.exitCode !== null || this.#process.signalCode !== null);
    }
    rmSync(this.#log, { force: true });
  }
}
