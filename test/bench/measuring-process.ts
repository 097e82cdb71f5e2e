import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { productionRights } from '../support/service.ts';
import type { Answer, Task } from './rounds.ts';
import type { Sample } from './statistics.ts';

/** The rights that a measuring process runs with. */
export type Rights = 'own' | 'production' | 'gateway';

const prefixes: Readonly<Record<Rights, readonly string[]>> = {
  own: [],
  production: productionRights,
  gateway: ['setpriv', '--reuid=19999', '--regid=19999', '--clear-groups', '--inh-caps=-all', '--bounding-set=-all'],
};

/** A process of its own that measures one kind of thing, so that measuring costs what is measured as little as it can. */
export class MeasuringProcess {
  readonly #child: ChildProcess;

  constructor(script: string, rights: Rights, ...args: readonly string[]) {
    const command = [process.execPath, fileURLToPath(new URL(script, import.meta.url)), ...args];
    const [program = '', ...rest] = [...prefixes[rights], ...command];
    this.#child = spawn(program, rest, {
      cwd: '/',
      env: { PATH: '/usr/local/bin:/usr/bin:/bin' },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
  }

  /** Has something measured. */
  async measure(callers: number, each: number, what?: unknown): Promise<Sample> {
    const task: Task = { callers, each, what };
    const answered = Promise.withResolvers<Answer>();
    const ended = (): void => answered.reject(new Error('a measuring process ended'));
    this.#child.once('message', answered.resolve).once('exit', ended);
    this.#child.send(task);
    const answer = await answered.promise.finally(() => this.#child.off('exit', ended));
    if ('failure' in answer) throw new Error(answer.failure);
    return answer.sample;
  }

  /** Ends it and waits until it is gone. */
  async end(): Promise<void> {
    if (!this.#child.connected) return;
    const exited = once(this.#child, 'exit');
    this.#child.disconnect();
    await exited;
  }
}
