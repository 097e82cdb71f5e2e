/**
 * Purpose: has what a user's space holds counted, by the native program's mode `usage`, run as that user.
 * Rights: none of its own; it asks the spawner, like runs.ts. A count takes no lock and none of RUNNER_MAX_RUNS.
 * Called by: quota.ts.
 * Fails: closed. A count that didn't come to its end, or says what is no report, is `usage_failed`. Other
 * processes of the user can kill it, and the end of a run of that user may have to: it is started once more.
 */
import type { Logger } from 'pino';
import { Refusal } from '../../protocol/errors.ts';
import { killLimitMs, usageEntriesMax, usageListedMax, usageTimeoutMs } from '../../protocol/limits.ts';
import { showsBrokenSpace } from '../runs/broken-space.ts';
import { encodeBeside } from '../runs/plan.ts';
import { Run, type RunEnd } from '../runs/run.ts';
import type { Spawner } from '../runs/spawner.ts';
import { readReport, reportBytesMax, type UsageReport } from './report.ts';
import { Slots } from './slots.ts';

/** Counts at once, of all users: each keeps a processor busy. */
const scansAtOnceMax = 4;
const scansWaitingMax = 128;
/**
 * A count that takes longer than this, ms, leaves its turn to another: its user may have stopped it, to hold up those of
 * others. Since none takes longer than `usageTimeoutMs`, there are at most ten times as many as turns.
 */
const slowMs = 3_000;
/** The program ends by itself this long before it would be killed, ms, so that it can close what it opened up. */
const ownEndMs = 1_000;
/** Below this no count is begun any more, ms. */
const worthwhileMs = 2 * ownEndMs;
/** A supervisor that says nothing for this long beyond the time limit is no longer believed in, ms. */
const supervisorSlackMs = 2 * killLimitMs;

/** Exit statuses of helper/native/usage.h, for the log. */
const failures: Readonly<Record<number, string>> = { 2: 'unreadable', 3: 'too_deep', 4: 'too_late', 5: 'too_large' };

/** Whose space is counted. */
export interface ScanTarget {
  readonly uid: number;
  /** Absolute path of the space. */
  readonly space: string;
}

interface Attempt {
  readonly end: RunEnd | { readonly kind: 'incomplete' };
  readonly output: Buffer;
}

/** Killed by somebody else, or its supervisor was: worth another try, unlike what the count itself found out. */
const wasCutShort = ({ end }: Attempt): boolean =>
  end.kind === 'lost' || (end.kind === 'exit' && end.exit.reason !== 'timeout' && end.exit.signal !== undefined);

/** Has spaces counted, a bounded number at once. */
export class UsageScans {
  readonly #spawner: Spawner;
  readonly #program: string;
  readonly #log: Logger;
  readonly #slots = new Slots(scansAtOnceMax, scansWaitingMax);

  /** @param program the native program */
  constructor(spawner: Spawner, program: string, log: Logger) {
    this.#spawner = spawner;
    this.#program = program;
    this.#log = log;
  }

  /** True while a count that nobody asked for yet would be in nobody's way. */
  get hasRoom(): boolean {
    return this.#slots.taken < scansAtOnceMax / 2;
  }

  /**
   * Counts what a space holds, within `usageTimeoutMs`.
   * @throws Refusal `usage_failed`, `workspace_broken`, `worker_unavailable`, `overloaded`
   */
  async scan(target: ScanTarget): Promise<UsageReport> {
    const deadline = performance.now() + usageTimeoutMs;
    const release = await this.#slots.take(usageTimeoutMs - worthwhileMs);
    const patience = setTimeout(release, slowMs);
    try {
      return this.#reportOf(await this.#attempts(target, deadline));
    } finally {
      clearTimeout(patience);
      release();
    }
  }

  async #attempts(target: ScanTarget, deadline: number): Promise<Attempt> {
    const first = await this.#attempt(target, deadline);
    return wasCutShort(first) && deadline - performance.now() >= worthwhileMs ? this.#attempt(target, deadline) : first;
  }

  async #attempt({ uid, space }: ScanTarget, deadline: number): Promise<Attempt> {
    await this.#spawner.ready();
    const timeLimitMs = Math.max(Math.round(deadline - performance.now()), worthwhileMs);
    const numbers = [usageEntriesMax, usageListedMax, timeLimitMs - ownEndMs].map(String);
    const plan = encodeBeside({
      uid,
      program: this.#program,
      space,
      directory: '',
      args: [this.#program, 'usage', ...numbers],
      // In no command line: others can read those.
      environment: [`SPACE=${space}`],
      timeLimitMs,
      outputBytesMax: reportBytesMax,
      // It starts nothing and writes nothing; a user whose processes are at their limit is still counted.
      processesMax: 0,
      fileBytesMax: 0,
      addressBytesMax: 0,
      termGraceMs: 0,
      streams: 'empty',
    });
    if (plan === undefined) throw new Refusal('usage_failed');
    const pieces: Buffer[] = [];
    const run = new Run(this.#spawner.socketPath, plan, (stream, data) => {
      if (stream === 'stdout') pieces.push(Buffer.from(data));
      return true;
    });
    const end = await bounded(run, timeLimitMs + supervisorSlackMs);
    return { end, output: Buffer.concat(pieces) };
  }

  #reportOf({ end, output }: Attempt): UsageReport {
    if (end.kind === 'unreached') throw new Refusal('worker_unavailable');
    if (end.kind === 'failed' && showsBrokenSpace(end.step, end.errno)) throw new Refusal('workspace_broken');
    const ended = end.kind === 'exit' ? end.exit : undefined;
    const report = ended?.exitCode === 0 && !ended.stdoutCut ? readReport(output) : undefined;
    if (report) return report;
    const reason = failures[ended?.exitCode ?? 0] ?? ended?.signal ?? ended?.reason ?? end.kind;
    this.#log.warn({ reason }, 'what a space holds could not be counted');
    throw new Refusal('usage_failed');
  }
}

/** The end of a run, if its supervisor tells it in time. What resists its end is left to its supervisor. */
const bounded = async (run: Run, limitMs: number): Promise<Attempt['end']> => {
  const silent = Promise.withResolvers<RunEnd>();
  const timer = setTimeout(() => {
    run.abandon();
    silent.resolve({ kind: 'lost' });
  }, limitMs);
  const resists = run.incomplete.then(() => ({ kind: 'incomplete' }) as const);
  const end = await Promise.race([run.ended, resists, silent.promise]);
  clearTimeout(timer);
  return end;
};
