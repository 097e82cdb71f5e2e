/**
 * Purpose: the handler of `POST /v1/process/start`: from checked params to a process that has a handle.
 * Rights: root with the three capabilities, used through spaces.ts and the spawner only.
 * Called by: dispatch.ts, with params that passed the schema.
 * Fails: with a refusal when the tool was not executed. The user's lock is given back only when all of the process is gone.
 */
import { join } from 'node:path';
import { Refusal } from '../../protocol/errors.ts';
import { processGraceMs, terminalSize } from '../../protocol/limits.ts';
import type { Params, Result } from '../../protocol/operations/index.ts';
import { canonicalWorkspaceId, parseWorkspaceId } from '../../protocol/operations/process-fields.ts';
import { processStart } from '../../protocol/operations/process-start.ts';
import type { WorkerConfig } from '../config.ts';
import type { HandlerContext } from '../handlers.ts';
import type { Processes } from '../processes/processes.ts';
import type { LaunchPlan } from '../runs/plan.ts';
import type { OutputSink } from '../runs/run.ts';
import type { RunHandle } from '../runs/runs.ts';
import { uidOf } from '../spaces.ts';
import { environmentOf, type LaunchDependencies, launch, limitsOf, lostRun, refusalOf } from './launching.ts';

/** What the handler is made of. */
interface StartDependencies extends LaunchDependencies {
  readonly processes: Processes;
}

/** What programs take a terminal for that is told nothing better. */
const terminalType = 'TERM=xterm-256color';

const planOf = (
  { tty = false, args = [] }: Params<'process.start'>,
  { user, folder, program, space }: { user: number; folder: string; program: string; space: string },
  config: WorkerConfig,
): LaunchPlan => ({
  uid: uidOf(user),
  program,
  space,
  directory: folder,
  args: [program, ...args],
  environment: environmentOf(join(space, 'home'), tty ? [terminalType] : []),
  timeLimitMs: config.processTimeoutMs,
  // What is not kept is dropped by the window; the supervisor counts nothing.
  outputBytesMax: Number.MAX_SAFE_INTEGER,
  ...limitsOf(config),
  termGraceMs: processGraceMs,
  streams: tty ? terminalSize : 'pipes',
});

/** @throws Refusal when it was not executed, or nobody knows */
const executed = async (handle: RunHandle): Promise<void> => {
  const end = await Promise.race([handle.started, handle.outcome]);
  switch (end?.kind) {
    case 'failed':
      throw refusalOf(end.step, end.errno, 'workspace_not_found');
    case 'unreached':
      throw new Refusal('worker_unavailable');
    case 'lost':
      throw await lostRun(handle);
    case 'incomplete':
      throw new Refusal('kill_incomplete');
    case 'exit':
      // Ended from outside before anybody saw that it was executed.
      if (end.exit.reason !== 'exited') throw new Refusal('uncertain');
      break;
    case undefined: // It runs.
  }
};

/** Makes the handler. */
export const startHandler =
  (dependencies: StartDependencies) =>
  async (params: Params<'process.start'>, context: HandlerContext): Promise<Result<'process.start'>> => {
    const { config, spaces, quota, locks, processes } = dependencies;
    const { workspaceId, tool, args, tty = false } = params;
    const program = config.tools.get(tool);
    if (program === undefined) throw new Refusal('tool_not_allowed');
    context.note({ tool, args: args?.length ?? 0 });
    const workspace = parseWorkspaceId(workspaceId);
    if (workspace === undefined) throw new Error('a workspace that passed the schema is none');
    const space = spaces.ensure(workspace.user);
    await quota.check(workspace.user);
    const process = processes.open({
      workspaceId: canonicalWorkspaceId(workspaceId),
      user: workspace.user,
      tool,
      tty,
    });
    const { processId } = process.facts;
    // Who asked for it can stop it until the handle is told, and no longer.
    const stop = new AbortController();
    const giveUp = (): void => stop.abort();
    context.signal.addEventListener('abort', giveUp, { once: true });
    try {
      const holder = { action: processStart.audit, operationId: context.operationId, processId };
      const plan = planOf(params, { ...workspace, program, space }, config);
      const release = locks.acquire(workspace.user, holder);
      const { user } = workspace;
      const sink: OutputSink = (stream, data) => process.took(stream, data);
      const asked = { begin: context.begin, signal: stop.signal };
      const handle = await launch(dependencies, { user, plan, sink, release }, asked);
      await executed(handle);
      if (stop.signal.aborted) throw new Refusal('uncertain');
      processes.began(process, handle, context.operationId);
    } catch (error) {
      processes.drop(process);
      throw error;
    } finally {
      context.signal.removeEventListener('abort', giveUp);
    }
    return { processId, dispatchStatus: 'started' };
  };
