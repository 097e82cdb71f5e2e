/**
 * Purpose: the fs helpers of all users: gives each call a helper of its user's, replaces those that died or got
 * stuck, and bounds how many there are.
 * Rights: none of its own; it asks the spawner.
 * Called by: the handlers of the file routes; sessions of git workflows and clear-interrupted.ts (worker/git); main.ts at
 * start and stop.
 * Fails: closed. A read that got no answer is repeated once. A change whose helper was lost after it was asked is
 * `uncertain`, and is only told so when nothing of that helper is left: the user's lock is held until then.
 */
import type { Logger } from 'pino';
import type { FsCall, FsVerb } from '../../helper/contract/fs.ts';
import { Refusal } from '../../protocol/errors.ts';
import { endLost } from '../runs/end-lost.ts';
import type { HelperPlan } from '../runs/plan.ts';
import type { Spawner } from '../runs/spawner.ts';
import { uidOf } from '../spaces.ts';
import { type FsHelper, HelperFailure } from './fs-helper.ts';
import { Lane } from './lane.ts';
import { before, Expired } from './limit.ts';
import { Places } from './places.ts';
import { StandBy } from './stand-by.ts';

interface PoolOptions {
  readonly plan: HelperPlan;
  /** Helpers that stand by. */
  readonly standBy: number;
  /** Helpers that are users', those that are just ending included. */
  readonly max: number;
  /** A user's helper is kept this long without a call, ms. */
  readonly idleMs: number;
  readonly spaceOf: (user: number) => string;
}

/** How long a call may take, and when nobody waits for it any more. */
export interface CallOptions {
  readonly deadlineMs: number;
  readonly signal: AbortSignal;
}

/** What never waits for a change of the same user's: these calls have a lane, and a helper, of their own. */
const besideChanges: readonly FsVerb[] = ['list', 'read'];

/** What changes nothing. A workflow's look goes where its changes go, so that one helper does for all of it. */
const repeatable: readonly FsVerb[] = [...besideChanges, 'repository'];

const isRepeatable = ({ verb }: FsCall): boolean => repeatable.includes(verb);

/** The fs helpers of all users. */
export class HelperPool {
  readonly #spawner: Spawner;
  readonly #options: PoolOptions;
  readonly #log: Logger;
  readonly #standBy: StandBy;
  readonly #places: Places;
  readonly #lanes = new Map<string, Lane>();
  #stopping = false;

  constructor(spawner: Spawner, options: PoolOptions, log: Logger) {
    this.#spawner = spawner;
    this.#options = options;
    this.#log = log;
    this.#standBy = new StandBy(spawner, options.plan, options.standBy, log);
    this.#places = new Places(options.max, () => this.#endOneIdle());
  }

  /** Lets the first helpers stand by. */
  start(): void {
    this.#standBy.fill();
  }

  /**
   * Has one call done by the user's helper.
   * @returns what it answered, of a shape that is still to be checked
   * @throws Refusal the helper's own; `overloaded` or `worker_unavailable`: nothing was done; `file_failed` for a read
   * and `uncertain` for a change that got no answer
   */
  async call(user: number, call: FsCall, { deadlineMs, signal }: CallOptions): Promise<unknown> {
    if (this.#stopping) throw new Refusal('draining');
    const until = performance.now() + deadlineMs;
    const lane = this.#laneOf(user, call);
    try {
      await lane.turn(until, signal);
    } catch (error) {
      throw this.#unasked(error, call, signal);
    }
    try {
      return await this.#serve(lane, call, until, signal);
    } finally {
      this.#done(lane);
    }
  }

  /** Ends the user's helpers, those at work after their call; the next call gets a new one. */
  discard(user: number): void {
    for (const lane of this.#lanes.values()) {
      if (lane.user !== user) continue;
      if (lane.busy) lane.stale = true;
      else this.#end(lane);
    }
  }

  /** Ends every helper. Resolves when they are gone; the caller bounds the wait. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await this.#standBy.stop();
  }

  #laneOf(user: number, call: FsCall): Lane {
    const key = `${user} ${besideChanges.includes(call.verb) ? 'beside' : 'in order'}`;
    const lane = this.#lanes.get(key) ?? new Lane(user);
    this.#lanes.set(key, lane);
    return lane;
  }

  async #serve(lane: Lane, call: FsCall, until: number, signal: AbortSignal): Promise<unknown> {
    for (let last = false; ; last = true) {
      // What gets stuck must leave time for a second try.
      const now = performance.now();
      const limit = last ? until : now + (until - now) / 2;
      let helper: FsHelper;
      try {
        helper = await this.#helperFor(lane, limit, signal);
      } catch (error) {
        if (last || error instanceof Refusal || signal.aborted) throw this.#unasked(error, call, signal);
        continue;
      }
      try {
        return await before(helper.call(call), isRepeatable(call) ? limit : until, signal);
      } catch (error) {
        if (!(error instanceof HelperFailure || error instanceof Expired)) throw error;
        if (error instanceof HelperFailure)
          this.#log.warn({ failure: error.message }, 'a file helper failed in a call');
        const gone = this.#end(lane);
        if (!isRepeatable(call)) throw await this.#lost(lane.user, gone);
        if (last || signal.aborted) throw new Refusal('file_failed');
      }
    }
  }

  /** Nothing has been asked of a helper yet. */
  #unasked(error: unknown, call: FsCall, signal: AbortSignal): Refusal {
    if (error instanceof Refusal) return error;
    // As with runs: nobody waits, so that nobody needs to know more.
    if (signal.aborted) return new Refusal(isRepeatable(call) ? 'file_failed' : 'uncertain');
    return new Refusal(error instanceof Expired ? 'overloaded' : 'worker_unavailable');
  }

  /** The lane's helper, or a new one that has become the user's. @throws Refusal, HelperFailure, Expired */
  async #helperFor(lane: Lane, until: number, signal: AbortSignal): Promise<FsHelper> {
    if (lane.stale) this.#end(lane);
    if (lane.helper?.alive) return lane.helper;
    const helper = await this.#take(until, signal);
    lane.helper = helper;
    try {
      await before(helper.become(uidOf(lane.user), this.#options.spaceOf(lane.user)), until, signal);
      return helper;
    } catch (error) {
      this.#end(lane);
      throw error;
    }
  }

  /** One that stands by, and a place for it until it is gone. */
  async #take(until: number, signal: AbortSignal): Promise<FsHelper> {
    await this.#places.take(until, signal);
    const taken = this.#standBy.take();
    try {
      const helper = await before(taken, until, signal);
      void helper.ended.then(() => this.#places.giveBack());
      return helper;
    } catch (error) {
      this.#places.giveBack();
      // It may still come, for somebody else.
      taken.then(
        (helper) => this.#standBy.giveBack(helper),
        () => undefined,
      );
      throw error;
    }
  }

  /** After a call: what is not needed any more goes, now or after a while. */
  #done(lane: Lane): void {
    lane.done();
    if (lane.busy) return;
    if (lane.stale || this.#stopping) this.#end(lane);
    if (lane.helper) lane.whenIdle(this.#options.idleMs, () => this.#end(lane));
    else this.#forget(lane);
    if (this.#places.wanted) this.#endOneIdle();
  }

  /** Ends a lane's helper. Resolves when it is gone: to false when nobody has seen that. */
  async #end(lane: Lane): Promise<boolean> {
    const helper = lane.release();
    if (!lane.busy) this.#forget(lane);
    helper?.discard();
    return (await helper?.ended)?.kind !== 'lost';
  }

  #forget(lane: Lane): void {
    for (const [key, value] of this.#lanes) if (value === lane) this.#lanes.delete(key);
  }

  /** Makes room: the one that was idle for the longest time goes. */
  #endOneIdle(): void {
    const idle = [...this.#lanes.values()].filter(({ busy, helper }) => !busy && helper?.alive);
    const [oldest] = idle.sort((one, other) => one.usedAt - other.usedAt);
    if (oldest) void this.#end(oldest);
  }

  /** A change whose helper was lost: told when nothing can happen any more. */
  async #lost(user: number, gone: Promise<boolean>): Promise<Refusal> {
    if (!(await gone)) await endLost(this.#spawner, uidOf(user), this.#log, () => this.#stopping);
    return new Refusal('uncertain');
  }
}
