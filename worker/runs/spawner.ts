/**
 * Purpose: keeps one native spawner alive and knows when it can be asked.
 * Rights: root with the three capabilities; they pass to the spawner, which is what uses them.
 * Called by: runs.ts for every run; main.ts at start and stop.
 * Fails: a spawner that dies is started anew, with a growing delay while it keeps dying at once. While there
 * is none, `ready` waits a bounded time and then refuses `worker_unavailable`: nothing has run.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, chownSync, lstatSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { Refusal } from '../../protocol/errors.ts';
import { faultOf } from '../../protocol/fault.ts';

/** It may have to wait this long for runs of an earlier life to be gone, ms; the native side waits 10 s. */
const readyTimeoutMs = 12_000;
/** A request waits this long for a spawner that is being started anew, ms. */
const patienceMs = 2_000;
const restartDelayMs = { first: 50, most: 5_000 };
/** A spawner that lived longer than this was healthy: the next delay is short again, ms. */
const healthyMs = 10_000;

interface SpawnerPaths {
  /** The native program. */
  readonly program: string;
  /** A folder that only root can enter; the socket lies in it. */
  readonly folder: string;
  /** Held by the spawner and its supervisors: free only when nothing of an earlier life is left. */
  readonly lock: string;
}

/** Makes the socket's folder, or checks the one that is there. */
const prepareFolder = (folder: string): void => {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const found = lstatSync(folder);
  if (!found.isDirectory() || found.uid !== 0) throw new Error('the folder of the spawner socket is not root’s own');
  chownSync(folder, 0, 0);
  chmodSync(folder, 0o700);
};

/** Resolves when the process says that it listens. */
const announced = async (child: ChildProcess): Promise<void> => {
  const output = child.stdout;
  if (output === null) throw new Error('the spawner has no output');
  const ready = Promise.withResolvers<void>();
  const timer = setTimeout(() => {
    ready.reject(new Error('the spawner did not get ready in time'));
    // Its lifeline: it ends by this, and another one is started, rather than that nobody ever listens to it again.
    child.stdin?.destroy();
  }, readyTimeoutMs);
  child.once('exit', () => ready.reject(new Error('the spawner exited at its start')));
  child.once('error', ready.reject);
  output.once('data', () => ready.resolve());
  try {
    await ready.promise;
  } finally {
    clearTimeout(timer);
  }
};

/** The one spawner process of this worker. */
export class Spawner {
  readonly socketPath: string;
  readonly #paths: SpawnerPaths;
  readonly #log: Logger;
  #child: ChildProcess | undefined;
  #listening: Promise<void> = Promise.reject(new Error('not started'));
  #isListening = false;
  #delayMs = restartDelayMs.first;
  #stopping = false;
  #exited: Promise<void> = Promise.resolve();

  constructor(paths: SpawnerPaths, log: Logger) {
    this.#paths = paths;
    this.#log = log;
    this.socketPath = join(paths.folder, 'spawner.sock');
    this.#listening.catch(() => undefined);
  }

  /** pid of the process, while there is one. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Starts the process and waits until it listens. @throws Error with a sentence for the operator */
  async start(): Promise<void> {
    prepareFolder(this.#paths.folder);
    this.#launch();
    await this.#listening;
  }

  /**
   * Resolves when runs can be asked for.
   * @throws Refusal `worker_unavailable` when there is no spawner within a bounded time
   */
  async ready(): Promise<void> {
    if (this.#isListening) return;
    const timer = Promise.withResolvers<never>();
    const timeout = setTimeout(() => timer.reject(new Refusal('worker_unavailable')), patienceMs);
    try {
      await Promise.race([this.#listening, timer.promise]);
    } catch {
      throw new Refusal('worker_unavailable');
    } finally {
      clearTimeout(timeout);
    }
  }

  /** Ends the process by its lifeline; it ends every run first. Resolves when it is gone; the caller bounds the wait. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#child?.stdin?.destroy();
    await this.#exited;
  }

  #launch(): void {
    const startedAt = performance.now();
    const child = spawn(this.#paths.program, ['spawner', this.socketPath, this.#paths.lock], {
      detached: true,
      stdio: ['pipe', 'pipe', 'inherit'],
      env: {},
    });
    this.#child = child;
    child.stdin?.on('error', () => undefined);
    const exited = Promise.withResolvers<void>();
    this.#exited = exited.promise;
    this.#listening = announced(child);
    this.#listening.then(
      () => {
        this.#isListening = this.#child === child;
      },
      () => undefined,
    );
    child.once('error', (error) => this.#log.error(faultOf(error), 'the spawner cannot be started'));
    child.once('close', (code, signal) => {
      this.#child = undefined;
      this.#isListening = false;
      exited.resolve();
      if (!this.#stopping) this.#restart(performance.now() - startedAt, code, signal);
    });
  }

  #restart(livedMs: number, code: number | null, signal: NodeJS.Signals | null): void {
    this.#delayMs = livedMs > healthyMs ? restartDelayMs.first : Math.min(this.#delayMs * 2, restartDelayMs.most);
    this.#log.error({ code, signal, delayMs: this.#delayMs }, 'the spawner is gone; starting another');
    const again = Promise.withResolvers<void>();
    this.#listening = again.promise;
    this.#listening.catch(() => undefined);
    setTimeout(() => {
      if (this.#stopping) return again.reject(new Error('stopping'));
      this.#launch();
      this.#listening.then(again.resolve, again.reject);
    }, this.#delayMs);
  }
}
