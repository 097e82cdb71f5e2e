/**
 * Purpose: the launch plan of one git command of a workflow.
 * Rights: none of its own.
 * Called by: session.ts.
 * Fails: never; git is always one of the tools.
 */
import { termGraceMs } from '../../protocol/limits.ts';
import type { WorkerConfig } from '../config.ts';
import { limitsOf } from '../operations/launching.ts';
import type { LaunchPlan } from '../runs/plan.ts';
import { uidOf } from '../spaces.ts';
import type { GitCommand } from './commands.ts';

/** The plan of a command for one user: `space` is the absolute path of that user's space. */
export const gitPlan = (
  config: WorkerConfig,
  { user, space }: { readonly user: number; readonly space: string },
  { directory, args }: GitCommand,
  given: Pick<LaunchPlan, 'environment' | 'timeLimitMs' | 'outputBytesMax'>,
): LaunchPlan => {
  const program = config.tools.get('git');
  if (program === undefined) throw new Error('git is one of the tools');
  return {
    uid: uidOf(user),
    program,
    space,
    directory,
    args: [program, ...args],
    ...given,
    ...limitsOf(config),
    termGraceMs,
    streams: 'empty',
  };
};
