/**
 * Purpose: helpers that are ready before anybody needs them: up, still root's, nobody's yet.
 * Rights: none of its own; it asks the spawner.
 * Called by: helper-pool.ts.
 * Fails: whoever waits for a helper that can't be started is told so; another one is started after a growing delay.
 */
import type { Logger } from 'pino';
import { faultOf } from '../../protocol/fault.ts';
import { encodeHelper, type HelperPlan } from '../runs/plan.ts';
import type { Spawner } from '../runs/spawner.ts';
import { FsHelper, HelperFailure } from './fs-helper.ts';

/** It says that it is ready within this, ms: far more than a start takes on a busy machine. */
const readyLimitMs = 20_000;
const retryDelayMs = { first: 100, most: 30_000 };

/** Keeps a number of helpers ready. */
export class StandBy {
  readonly #spawner: Spawner;
  readonly #plan: Buffer;
  readonly #count: number;
  readonly #log: Logger;
  readonly #all = new Set<FsHelper>();
  readonly #ready: FsHelper[] = [];
  readonly #waiting: PromiseWithResolvers<FsHelper>[] = [];
  #starting = 0;
  #delayMs = retryDelayMs.first;
  #retry: NodeJS.Timeout | undefined;
  #stopping = false;

  constructor(spawner: Spawner, plan: HelperPlan, count: number, log: Logger) {
    this.#spawner = spawner;
    this.#plan = encodeHelper(plan);
    this.#count = count;
    this.#log = log;
  }

  /** Starts as many as are missing. */
  fill(): void {
    if (this.#stopping || this.#retry) return;
    const missing = this.#count + this.#waiting.length - this.#ready.length - this.#starting;
    for (let i = 0; i < missing; i += 1) void this.#start();
  }

  /** A helper that is ready; another one then takes its place. @throws HelperFailure or Refusal `worker_unavailable` */
  async take(): Promise<FsHelper> {
    const helper = this.#ready.shift();
    const waiting = Promise.withResolvers<FsHelper>();
    if (helper) waiting.resolve(helper);
    else if (this.#stopping) waiting.reject(new HelperFailure('the service is stopping'));
    else this.#waiting.push(waiting);
    this.fill();
    return waiting.promise;
  }

  /** One that was taken and has not become anybody's. */
  giveBack(helper: FsHelper): void {
    if (!helper.alive) return;
    const waiting = this.#waiting.shift();
    if (waiting) waiting.resolve(helper);
    else if (this.#stopping || this.#ready.length >= this.#count) helper.discard();
    else this.#ready.push(helper);
  }

  /** Ends them all; resolves when they are gone. */
  async stop(): Promise<void> {
    this.#stopping = true;
    clearTimeout(this.#retry);
    for (const waiting of this.#waiting.splice(0)) waiting.reject(new HelperFailure('the service is stopping'));
    for (const helper of this.#all) helper.discard();
    await Promise.all([...this.#all].map((helper) => helper.ended));
  }

  async #start(): Promise<void> {
    this.#starting += 1;
    try {
      await this.#spawner.ready();
      if (this.#stopping) return;
      const helper = new FsHelper(this.#spawner.socketPath, this.#plan);
      this.#watch(helper);
      await this.#untilReady(helper);
      this.#delayMs = retryDelayMs.first;
      this.giveBack(helper);
    } catch (error) {
      this.#failed(error);
    } finally {
      this.#starting -= 1;
    }
    this.fill();
  }

  async #untilReady(helper: FsHelper): Promise<void> {
    const timer = setTimeout(() => helper.discard(), readyLimitMs);
    try {
      await helper.ready;
    } finally {
      clearTimeout(timer);
    }
  }

  #watch(helper: FsHelper): void {
    this.#all.add(helper);
    void helper.ended.then((end) => {
      this.#all.delete(helper);
      if (end.kind === 'failed')
        this.#log.error({ step: end.step, errno: end.errno }, 'a file helper cannot be started');
      const at = this.#ready.indexOf(helper);
      if (at < 0) return;
      this.#ready.splice(at, 1);
      this.#failed(new HelperFailure('it ended while it stood by'));
    });
  }

  /** One that waits is told, and what waits from here on gets another try later. */
  #failed(error: unknown): void {
    if (this.#stopping) return;
    this.#log.warn({ ...faultOf(error), delayMs: this.#delayMs }, 'no file helper got ready; starting another');
    for (const waiting of this.#waiting.splice(0)) waiting.reject(error);
    this.#retry ??= setTimeout(() => {
      this.#retry = undefined;
      this.fill();
    }, this.#delayMs);
    this.#delayMs = Math.min(this.#delayMs * 2, retryDelayMs.most);
  }
}
