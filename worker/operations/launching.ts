/**
 * Purpose: what every handler that launches a tool has in common: its environment, and what a launch that failed or was
 * lost is answered with.
 * Rights: none.
 * Called by: exec.ts, process-start.ts.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { LaunchStep } from '../../helper/contract.ts';
import { type ErrorCode, Refusal } from '../../protocol/errors.ts';
import { killLimitMs } from '../../protocol/limits.ts';
import { toolPath } from '../config.ts';
import { showsBrokenSpace } from '../runs/broken-space.ts';
import type { RunHandle } from '../runs/runs.ts';

/** The set-up variables of the seed's helper; never a request's to set. */
const reservedPrefix = 'EXECX_';

/** Defaults first, then the request's; of several entries with one key the last one wins. */
export const environmentOf = (home: string, entries: readonly string[]): string[] => {
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
