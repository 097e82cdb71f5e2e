/**
 * Purpose: the handler of `POST /v1/exec`: from checked params to a plan, and from a run's end to a result or a refusal.
 * Rights: root with the three capabilities, used through spaces.ts and the spawner only.
 * Called by: dispatch.ts, with params that passed the schema.
 * Fails: with a refusal for every end that is not the tool's own; the user's lock is given back only when the run is gone.
 */
import { join } from 'node:path';
import { Refusal } from '../../protocol/errors.ts';
import { processesForHelper, termGraceMs } from '../../protocol/limits.ts';
import { exec } from '../../protocol/operations/exec.ts';
import type { Params, Result } from '../../protocol/operations/index.ts';
import type { WorkerConfig } from '../config.ts';
import type { HandlerContext } from '../handlers.ts';
import type { UserLocks } from '../locks.ts';
import type { Quota } from '../quota.ts';
import type { RunExit } from '../runs/messages.ts';
import type { LaunchPlan } from '../runs/plan.ts';
import type { RunHandle, Runs } from '../runs/runs.ts';
import { type Spaces, uidOf } from '../spaces.ts';
import type { FileHelpers } from './file-helpers.ts';
import { environmentOf, lostRun, refusalOf } from './launching.ts';

interface ExecDependencies {
  readonly config: WorkerConfig;
  readonly spaces: Spaces;
  readonly quota: Quota;
  readonly locks: UserLocks;
  readonly runs: Runs;
  readonly helpers: Pick<FileHelpers, 'discard'>;
}

const planOf = (params: Params<'exec'>, program: string, space: string, config: WorkerConfig): LaunchPlan => ({
  uid: uidOf(params.user),
  program,
  space,
  directory: params.dir ?? '',
  // The agent's id comes last: it is an option of evo-workflow's subcommand, and no argument of the caller's can move it.
  args: [program, ...(params.args ?? []), ...(params.agent ? ['--session-agent', params.agent] : [])],
  environment: environmentOf(join(space, 'home'), params.env ?? []),
  timeLimitMs: config.execTimeoutMs,
  outputBytesMax: config.outputBytesMax,
  processesMax: config.processesMax === 0 ? 0 : config.processesMax + processesForHelper,
  fileBytesMax: config.fileBytesMax,
  addressBytesMax: config.addressBytesMax,
  termGraceMs: params.tool === 'git' ? termGraceMs : 0,
  streams: 'empty',
});

const resultOf = (run: RunExit): Result<'exec'> => ({
  exitCode: run.exitCode ?? -1,
  truncated: run.stdoutCut || run.stderrCut,
  timedOut: run.reason === 'timeout',
  durationMs: Math.round(run.durationMicros / 1000),
  signal: run.signal ?? null,
});

/** @throws Refusal for every end that is not the tool's own or the time limit's */
const settled = async (handle: RunHandle, context: HandlerContext): Promise<RunExit> => {
  const end = await handle.outcome;
  switch (end.kind) {
    case 'failed':
      throw refusalOf(end.step, end.errno);
    case 'unreached':
      throw new Refusal('worker_unavailable');
    case 'lost':
      throw await lostRun(handle);
    case 'incomplete':
      if (end.exit.exitCode !== undefined) context.note({ exit: end.exit.exitCode });
      throw new Refusal('kill_incomplete');
    case 'exit':
      // Ended because nobody waits, or because its spawner died: whatever the leader's status says, the tool was cut short.
      if (end.exit.reason === 'stopped' || end.exit.reason === 'spawnerLost') throw new Refusal('uncertain');
      return end.exit;
  }
};

/** Makes the handler of `POST /v1/exec`. */
export const execHandler =
  ({ config, spaces, quota, locks, runs, helpers }: ExecDependencies) =>
  async (params: Params<'exec'>, context: HandlerContext): Promise<Result<'exec'>> => {
    const program = config.tools.get(params.tool);
    if (program === undefined) throw new Refusal('tool_not_allowed');
    context.note({ tool: params.tool, args: params.args?.length ?? 0 });
    const space = spaces.ensure(params.user);
    await quota.check(params.user);
    const release = locks.acquire(params.user, { action: exec.audit, operationId: context.operationId });
    let handle: RunHandle;
    try {
      const plan = planOf(params, program, space, config);
      await context.begin();
      handle = await runs.start(
        plan,
        (stream, data, resume) => context.outputs.write(stream, data, resume),
        context.signal,
      );
    } catch (error) {
      release();
      throw error;
    }
    // The lock outlives this answer when the run does.
    void handle.gone.then(() => {
      // A user's tools can signal and limit the helper, which would outlast them.
      helpers.discard(params.user);
      release();
      quota.changed(params.user);
    });
    const run = await settled(handle, context);
    if (run.stdoutCut) context.outputs.markCut('stdout');
    if (run.stderrCut) context.outputs.markCut('stderr');
    const exit = run.exitCode ?? -1;
    context.note(run.reason === 'timeout' ? { exit, status: 'timeout' } : { exit });
    return resultOf(run);
  };
