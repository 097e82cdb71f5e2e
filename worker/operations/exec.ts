/**
 * Purpose: the handler of `POST /v1/exec`: from checked params to a plan, and from a run's end to a result or a refusal.
 * Rights: root with the three capabilities, used through spaces.ts and the spawner only.
 * Called by: dispatch.ts, with params that passed the schema.
 * Fails: with a refusal for every end that is not the tool's own; the user's lock is given back only when the run is gone.
 */
import { join } from 'node:path';
import { Refusal } from '../../protocol/errors.ts';
import { termGraceMs } from '../../protocol/limits.ts';
import { exec } from '../../protocol/operations/exec.ts';
import type { Params, Result } from '../../protocol/operations/index.ts';
import type { WorkerConfig } from '../config.ts';
import type { HandlerContext } from '../handlers.ts';
import type { RunExit } from '../runs/messages.ts';
import type { LaunchPlan } from '../runs/plan.ts';
import type { OutputSink } from '../runs/run.ts';
import { uidOf } from '../spaces.ts';
import { environmentOf, type LaunchDependencies, launch, limitsOf, settled } from './launching.ts';

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
  ...limitsOf(config),
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

/** Makes the handler of `POST /v1/exec`. */
export const execHandler =
  (dependencies: LaunchDependencies) =>
  async (params: Params<'exec'>, context: HandlerContext): Promise<Result<'exec'>> => {
    const { config, spaces, quota, locks } = dependencies;
    const { user, tool } = params;
    const program = config.tools.get(tool);
    if (program === undefined) throw new Refusal('tool_not_allowed');
    context.note({ tool, args: params.args?.length ?? 0 });
    const space = spaces.ensure(user);
    await quota.check(user);
    const plan = planOf(params, program, space, config);
    const release = locks.acquire(user, { action: exec.audit, operationId: context.operationId });
    const sink: OutputSink = (stream, data, resume) => context.outputs.write(stream, data, resume);
    const handle = await launch(dependencies, { user, plan, sink, release }, context);
    const run = await settled(handle, context);
    if (run.stdoutCut) context.outputs.markCut('stdout');
    if (run.stderrCut) context.outputs.markCut('stderr');
    const exit = run.exitCode ?? -1;
    context.note(run.reason === 'timeout' ? { exit, status: 'timeout' } : { exit });
    return resultOf(run);
  };
