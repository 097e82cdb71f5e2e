/**
 * Purpose: the handler of `POST /v1/exec`: from checked params to a plan, and from a run's end to a result or a refusal.
 * Rights: root with the three capabilities, used through spaces.ts and the spawner only.
 * Called by: dispatch.ts, with params that passed the schema.
 * Fails: with a refusal for every end that is not the tool's own; the user's lock is given back only when the run is gone.
 */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { LaunchStep } from '../../helper/contract.ts';
import { type ErrorCode, Refusal } from '../../protocol/errors.ts';
import { killLimitMs, processesForHelper, termGraceMs } from '../../protocol/limits.ts';
import { exec } from '../../protocol/operations/exec.ts';
import type { Params, Result } from '../../protocol/operations/index.ts';
import { toolPath, type WorkerConfig } from '../config.ts';
import type { HandlerContext } from '../handlers.ts';
import type { UserLocks } from '../locks.ts';
import type { Quota } from '../quota.ts';
import { showsBrokenSpace } from '../runs/broken-space.ts';
import type { RunExit } from '../runs/messages.ts';
import type { LaunchPlan } from '../runs/plan.ts';
import type { RunHandle, Runs } from '../runs/runs.ts';
import { type Spaces, uidOf } from '../spaces.ts';
import type { FileHelpers } from './file-helpers.ts';

interface ExecDependencies {
  readonly config: WorkerConfig;
  readonly spaces: Spaces;
  readonly quota: Quota;
  readonly locks: UserLocks;
  readonly runs: Runs;
  readonly helpers: Pick<FileHelpers, 'discard'>;
}

/** The set-up variables of the seed's helper; never a request's to set. */
const reservedPrefix = 'EXECX_';

/** Defaults first, then the request's; of several entries with one key the last one wins. */
const environmentOf = (home: string, entries: readonly string[]): string[] => {
  const variables = new Map([
    ['PATH', toolPath],
    ['LANG', 'C.UTF-8'],
    ['HOME', home],
  ]);
  for (const entry of entries) {
    const equals = entry.indexOf('=');
    const key = entry.slice(0, equals);
    if (!key.startsWith(reservedPrefix)) variables.set(key, entry.slice(equals + 1));
  }
  return Array.from(variables, ([key, value]) => `${key}=${value}`);
};

/** What a wrong `dir` is answered with, by the errno of the walk beneath home (openat2(2), RESOLVE_BENEATH). */
const directoryErrors: Readonly<Record<string, ErrorCode>> = {
  EXDEV: 'outside_workspace',
  ENOENT: 'not_found',
  ENAMETOOLONG: 'not_found',
  ENOTDIR: 'bad_target',
  ELOOP: 'bad_target',
};

const refusalOf = (step: LaunchStep, errno: string): Refusal => {
  if (showsBrokenSpace(step, errno)) return new Refusal('workspace_broken');
  if (step === 'limits') return new Refusal('limit_failed', { step, errno });
  const code = step === 'directory' ? directoryErrors[errno] : undefined;
  return code === undefined ? new Refusal('exec_failed', { step, errno }) : new Refusal(code);
};

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
      // Told, and put on record, when nothing of it can have an effect any more: that is all that can be known of it.
      await Promise.race([handle.gone, delay(killLimitMs, undefined, { ref: false })]);
      throw new Refusal('uncertain');
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
