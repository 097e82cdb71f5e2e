import type { FsCall } from '../../../../helper/contract/fs.ts';
import { Refusal } from '../../../../protocol/errors.ts';
import { readConfig } from '../../../../worker/config.ts';
import type { AuditFacts, HandlerContext } from '../../../../worker/handlers.ts';
import { UserLocks } from '../../../../worker/locks.ts';
import type { FileHelpers } from '../../../../worker/operations/file-helpers.ts';
import { Outputs } from '../../../../worker/outputs.ts';
import type { RunExit } from '../../../../worker/runs/messages.ts';
import type { LaunchPlan } from '../../../../worker/runs/plan.ts';
import type { OutputSink, RunEnd } from '../../../../worker/runs/run.ts';
import { type RunHandle, type RunPlace, Runs } from '../../../../worker/runs/runs.ts';
import { Spawner } from '../../../../worker/runs/spawner.ts';
import { Spaces } from '../../../../worker/spaces.ts';
import { collectingLog } from '../support/collect.ts';
import { StandInQuota } from '../support/quota.ts';
import { handleOf } from '../support/run-handle.ts';

/** An exit with code 0, unless it is said otherwise. */
export const runExit = (change: Partial<RunExit> = {}): RunExit => ({
  reason: 'exited',
  exitCode: 0,
  signal: undefined,
  stdoutCut: false,
  stderrCut: false,
  maxRssBytes: 1,
  cpuMicros: 1,
  durationMicros: 1,
  ...change,
});

/** How the stand-in for a run comes out. */
export interface Scripted {
  readonly end?: RunEnd | { readonly kind: 'incomplete'; readonly exit: RunExit };
  readonly stdout?: string;
  readonly stderr?: string;
  /** When nothing of it is left; at once if not said. */
  readonly gone?: Promise<unknown>;
}

const lost: RunEnd = { kind: 'lost' };

/** Takes plans, each in the one place that was taken for all, and ends each run as the test says. */
export class StandInRuns extends Runs {
  readonly plans: LaunchPlan[] = [];
  readonly places: (RunPlace | undefined)[] = [];
  readonly signals: AbortSignal[] = [];
  taken = 0;
  script: (plan: LaunchPlan) => Scripted = () => ({});

  constructor() {
    const { log } = collectingLog();
    super(new Spawner({ program: '/nowhere', folder: '/nowhere', lock: '/nowhere' }, log), 1, log);
  }

  override take(): RunPlace {
    const place = super.take();
    this.taken += 1;
    return place;
  }

  override async start(plan: LaunchPlan, sink: OutputSink, signal: AbortSignal, taken?: RunPlace): Promise<RunHandle> {
    this.plans.push(plan);
    this.places.push(taken);
    this.signals.push(signal);
    const { end = { kind: 'exit', exit: runExit() }, stdout, stderr, gone } = this.script(plan);
    if (stdout !== undefined) sink('stdout', Buffer.from(stdout), () => undefined);
    if (stderr !== undefined) sink('stderr', Buffer.from(stderr), () => undefined);
    return handleOf(
      Promise.resolve(end),
      (gone ?? Promise.resolve()).then(() => lost),
    );
  }
}

class StandInSpaces extends Spaces {
  override ensure(user: number): string {
    return this.pathOf(user);
  }
}

/** One call of the stand-in for the helpers. */
interface SeenCall {
  readonly call: FsCall;
  readonly deadlineMs: number;
  readonly aborted: boolean;
}

/** Answers calls as the test says, and keeps them. */
class StandInHelpers implements FileHelpers {
  readonly calls: SeenCall[] = [];
  readonly discarded: number[] = [];
  /** What was called and discarded, in order. */
  readonly order: string[] = [];
  answer: (call: FsCall) => unknown = () => ({});

  async call(_user: number, call: FsCall, options: { readonly deadlineMs: number; readonly signal: AbortSignal }) {
    this.calls.push({ call, deadlineMs: options.deadlineMs, aborted: options.signal.aborted });
    this.order.push(call.verb);
    if (options.signal.aborted) throw new Refusal('uncertain');
    return this.answer(call);
  }

  discard(user: number): void {
    this.discarded.push(user);
    this.order.push('discard');
  }
}

/** All that a workflow is made of, with stand-ins for what runs and for the helpers. */
export const workflowParts = (settings: Readonly<Record<string, string>> = {}) => {
  const config = readConfig({
    RUNNER_WORK_DIR: '/var/tmp',
    RUNNER_GIT: '/opt/git',
    RUNNER_ALLOWED_GIT_HOSTS: 'git.example',
    ...settings,
  });
  const runs = new StandInRuns();
  const spaces = new StandInSpaces(config.workDir);
  const locks = new UserLocks();
  const quota = new StandInQuota(spaces);
  const helpers = new StandInHelpers();
  const outputs = new Outputs({ credit: () => 1_000_000, send: () => undefined }, ['stdout', 'stderr']);
  const facts: AuditFacts[] = [];
  const stopping = new AbortController();
  /** How many runs there were each time that an effect was said to begin. */
  const begun: number[] = [];
  const context: HandlerContext = {
    operationId: 'the-operation',
    signal: stopping.signal,
    outputs,
    room: async () => undefined,
    begin: async () => void begun.push(runs.plans.length),
    note: (more) => void facts.push(more),
  };
  const isFree = (): boolean => {
    try {
      locks.acquire(7, { action: 'exec', operationId: 'probe' })();
      return true;
    } catch {
      return false;
    }
  };
  const told = (stream: 'stdout' | 'stderr'): string => outputs.kept()?.get(stream)?.toString() ?? '';
  return {
    dependencies: { config, spaces, quota, locks, runs, helpers },
    ...{ config, runs, locks, quota, helpers, outputs, facts, stopping, begun, context, isFree, told },
  };
};

/** What a workflow was refused with. */
export const refusedWith = async (answer: Promise<unknown>): Promise<string> => {
  const error: unknown = await answer.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof Refusal)) throw new Error(`not refused: ${String(error)}`);
  return error.code;
};
