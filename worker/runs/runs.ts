/**
 * Purpose: starts runs, bounds their number, and sees to it that each of them is gone in the end.
 * Rights: none of its own; it asks the spawner, over a socket that only this worker's pid may use.
 * Called by: handlers of operations that run something; main.ts at the stop.
 * Fails: closed. A run whose end nobody saw counts as lost: its user stays locked until the spawner has seen that
 * nothing of that user is left.
 */
import type { Logger } from 'pino';
import { Refusal } from '../../protocol/errors.ts';
import { killLimitMs } from '../../protocol/limits.ts';
import { endLost } from './end-lost.ts';
import type { RunExit } from './messages.ts';
import { encodeRun, type LaunchPlan } from './plan.ts';
import { type OutputSink, Run, type RunEnd } from './run.ts';
import type { Spawner } from './spawner.ts';

/** A supervisor that says nothing for this long beyond the run's own limits is no longer believed in, ms. */
const supervisorSlackMs = 2 * killLimitMs;

/** What can be done to a process while it runs; afterwards nothing happens. */
export type RunControls = Pick<
  Run,
  'listens' | 'stop' | 'kill' | 'signal' | 'resize' | 'accepts' | 'offer' | 'closeInput'
>;

/** Room for the runs of one operation, one after another. */
export interface RunPlace {
  /** To be called once, when the last of them is gone. */
  readonly giveBack: () => void;
}

/** What a handler sees of its run. */
export interface RunHandle {
  /** How it came out, as far as the caller is concerned: at its end, or when it could not be ended in time. */
  readonly outcome: Promise<RunEnd | { readonly kind: 'incomplete'; readonly exit: RunExit }>;
  /** Settles when a process is known to have been executed. */
  readonly started: Promise<void>;
  /** What a process is spoken to by. */
  readonly controls: RunControls;
  /** Settles only when no process of the run is left; whoever holds the user's lock gives it back then. How it ended. */
  readonly gone: Promise<RunEnd>;
}

/** Starts runs, bounds their number, and sees to it that each of them is gone in the end. */
export class Runs {
  readonly #spawner: Spawner;
  readonly #max: number;
  readonly #log: Logger;
  #underWay = 0;
  #stopping = false;
  #idle: (() => void)[] = [];

  constructor(spawner: Spawner, max: number, log: Logger) {
    this.#spawner = spawner;
    this.#max = max;
    this.#log = log;
  }

  /** True when one more run would be more than the operator allows. */
  get full(): boolean {
    return this.#underWay >= this.#max;
  }

  /** Resolves when no run is left; the caller bounds the wait. */
  async idle(): Promise<void> {
    if (this.#underWay === 0) return;
    await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /** From here on a lost run is left to the stopping spawner, which ends everything anyway. */
  stop(): void {
    this.#stopping = true;
  }

  /** Takes room for several runs, one after another. @throws Refusal `overloaded` */
  take(): RunPlace {
    if (this.full) throw new Refusal('overloaded');
    this.#underWay += 1;
    return { giveBack: () => this.#finished() };
  }

  /**
   * Starts a run. `signal` stops it; it needs no room of its own in a place that was taken.
   * @throws Refusal `overloaded`, `worker_unavailable`, `exec_failed` when the plan is too large, or `uncertain`
   * when nobody waits any more: nothing has run
   */
  async start(plan: LaunchPlan, sink: OutputSink, signal: AbortSignal, taken?: RunPlace): Promise<RunHandle> {
    const bytes = encodeRun(plan);
    if (bytes === undefined) throw new Refusal('exec_failed', { step: 'exec', errno: 'E2BIG' });
    const place = taken ?? this.take();
    const finished = (): void => (taken === undefined ? place.giveBack() : undefined);
    try {
      await this.#spawner.ready();
      // Nothing has begun. To begin it for nobody, only to end it at once, could still have an effect.
      if (signal.aborted) throw new Refusal('uncertain');
    } catch (error) {
      finished();
      throw error;
    }
    const run = new Run(this.#spawner.socketPath, bytes, sink);
    const stop = (): void => run.stop();
    signal.addEventListener('abort', stop, { once: true });
    const ended = this.#bounded(run, plan.timeLimitMs + plan.termGraceMs + supervisorSlackMs);
    const gone = ended.then(async (end) => {
      signal.removeEventListener('abort', stop);
      if (end.kind === 'lost') await endLost(this.#spawner, plan.uid, this.#log, () => this.#stopping);
      finished();
      return end;
    });
    const incomplete = run.incomplete.then((exit) => ({ kind: 'incomplete', exit }) as const);
    return { outcome: Promise.race([ended, incomplete]), gone, started: run.started, controls: run };
  }

  /** The supervisor keeps the time limit itself; if even it is silent, the run counts as lost. */
  async #bounded(run: Run, limitMs: number): Promise<RunEnd> {
    const silent = Promise.withResolvers<RunEnd>();
    const timer = setTimeout(() => {
      run.abandon();
      silent.resolve({ kind: 'lost' });
    }, limitMs);
    // A run that said that it resists is not silent: it is waited for, with the user locked.
    run.incomplete.then(() => clearTimeout(timer));
    const end = await Promise.race([run.ended, silent.promise]);
    clearTimeout(timer);
    return end;
  }

  #finished(): void {
    this.#underWay -= 1;
    if (this.#underWay === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }
}
