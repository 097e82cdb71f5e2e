/**
 * Purpose: what every handler that launches a tool has in common: its environment and limits, its start under the user's
 * lock, and what a launch that failed or was lost is answered with.
 * Rights: root with the three capabilities, used through the spawner only.
 * Called by: exec.ts, process-start.ts; sessions of git workflows (worker/git).
 * Fails: with refusals. The user's lock is given back only when the run is gone.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { LaunchStep } from '../../helper/contract.ts';
import { type ErrorCode, Refusal } from '../../protocol/errors.ts';
import { killLimitMs, processesForHelper } from '../../protocol/limits.ts';
import { toolPath, type WorkerConfig } from '../config.ts';
import type { HandlerContext } from '../handlers.ts';
import type { UserLocks } from '../locks.ts';
import type { Quota } from '../quota.ts';
import { showsBrokenSpace } from '../runs/broken-space.ts';
import type { RunExit } from '../runs/messages.ts';
import type { LaunchPlan } from '../runs/plan.ts';
import type { OutputSink } from '../runs/run.ts';
import type { RunHandle, Runs } from '../runs/runs.ts';
import type { Spaces } from '../spaces.ts';
import type { FileHelpers } from './file-helpers.ts';

/** What a handler that launches a tool is made of. */
export interface LaunchDependencies {
  readonly config: WorkerConfig;
  readonly spaces: Spaces;
  readonly quota: Quota;
  readonly locks: UserLocks;
  readonly runs: Runs;
  readonly helpers: Pick<FileHelpers, 'discard'>;
}

/** The set-up variables of the seed's helper; never a request's to set. */
const reservedPrefix = 'EXECX_';

/** The entries of a request that have an effect at all. */
export const effectiveEntries = (entries: readonly string[]): string[] =>
  entries.filter((entry) => !entry.startsWith(reservedPrefix));

/** Defaults first, then the request's; of several entries with one key the last one wins. */
export const environmentOf = (home: string, entries: readonly string[]): string[] => {
  const variables = new Map([
    ['PATH', toolPath],
    ['LANG', 'C.UTF-8'],
    ['HOME', home],
  ]);
  for (const entry of effectiveEntries(entries)) {
    const equals = entry.indexOf('=');
    variables.set(entry.slice(0, equals), entry.slice(equals + 1));
  }
  return Array.from(variables, ([key, value]) => `${key}=${value}`);
};

/** The resource limits that the operator has set for tools. */
export const limitsOf = (config: WorkerConfig) => ({
  processesMax: config.processesMax === 0 ? 0 : config.processesMax + processesForHelper,
  fileBytesMax: config.fileBytesMax,
  addressBytesMax: config.addressBytesMax,
});

/** What is launched, for whom, and what takes its output. */
interface Launch {
  readonly user: number;
  readonly plan: LaunchPlan;
  readonly sink: OutputSink;
  /** Gives the user's lock back. */
  readonly release: () => void;
}

/** Puts a launch on record and starts it. The lock outlives the answer when the run does. @throws Refusal */
export const launch = async (
  { runs, helpers, quota }: Pick<LaunchDependencies, 'runs' | 'helpers' | 'quota'>,
  { user, plan, sink, release }: Launch,
  { begin, signal }: Pick<HandlerContext, 'begin' | 'signal'>,
): Promise<RunHandle> => {
  let handle: RunHandle;
  try {
    await begin();
    handle = await runs.start(plan, sink, signal);
  } catch (error) {
    release();
    throw error;
  }
  void handle.gone.then(() => {
    // A user's tools can signal and limit the helper, which would outlast them.
    helpers.discard(user);
    release();
    quota.changed(user);
  });
  return handle;
};

/** What a wrong `dir` is answered with, by the errno of the walk beneath home (openat2(2), RESOLVE_BENEATH). */
const directoryErrors: Readonly<Record<string, ErrorCode>> = {
  EXDEV: 'outside_workspace',
  ENOENT: 'not_found',
  ENAMETOOLONG: 'not_found',
  ENOTDIR: 'bad_target',
  ELOOP: 'bad_target',
};

/** What a launch that failed is answered with. `missing`: when the folder that it was to run in is not there. */
export const refusalOf = (step: LaunchStep, errno: string, missing: ErrorCode = 'not_found'): Refusal => {
  if (showsBrokenSpace(step, errno)) return new Refusal('workspace_broken');
  if (step === 'limits') return new Refusal('limit_failed', { step, errno });
  const known = step === 'directory' ? directoryErrors[errno] : undefined;
  const code = known === 'not_found' ? missing : known;
  return code === undefined ? new Refusal('exec_failed', { step, errno }) : new Refusal(code);
};

/**
 * What a run that nobody saw the end of is answered with: told, and put on record, when nothing of it can have an effect
 * any more, which is all that can be known of it.
 */
export const lostRun = async ({ gone }: Pick<RunHandle, 'gone'>): Promise<Refusal> => {
  await Promise.race([gone, delay(killLimitMs, undefined, { ref: false })]);
  return new Refusal('uncertain');
};

/**
 * Waits for the end of a run that is waited for.
 * @param missing what a folder that is not there is answered with
 * @throws Refusal for every end that is not the tool's own or the time limit's
 */
export const settled = async (
  handle: RunHandle,
  { note }: Pick<HandlerContext, 'note'>,
  missing: ErrorCode = 'not_found',
): Promise<RunExit> => {
  const end = await handle.outcome;
  switch (end.kind) {
    case 'failed':
      throw refusalOf(end.step, end.errno, missing);
    case 'unreached':
      throw new Refusal('worker_unavailable');
    case 'lost':
      throw await lostRun(handle);
    case 'incomplete':
      if (end.exit.exitCode !== undefined) note({ exit: end.exit.exitCode });
      throw new Refusal('kill_incomplete');
    case 'exit':
      // Ended because nobody waits, or because its spawner died: whatever the leader's status says, the tool was cut short.
      if (end.exit.reason === 'stopped' || end.exit.reason === 'spawnerLost') throw new Refusal('uncertain');
      return end.exit;
  }
};
