/**
 * Purpose: the handler of `POST /v1/workspace/reset`.
 * Rights: root with the three capabilities, used through spaces.ts and the pool only; no path is touched here.
 * Called by: dispatch.ts, with params that passed the schema.
 * Fails: with `reset_failed` where the helper can't finish; the next reset goes on.
 */
import type { Params, Result } from '../../protocol/operations/index.ts';
import { workspaceReset } from '../../protocol/operations/workspace-reset.ts';
import type { HandlerContext } from '../handlers.ts';
import { change, type FileDependencies } from './file-helpers.ts';
import { resultOf } from './fs-results.ts';

/** Makes the handler of `POST /v1/workspace/reset`. */
export const resetHandler =
  (dependencies: FileDependencies) =>
  async ({ user }: Params<'workspace.reset'>, context: HandlerContext): Promise<Result<'workspace.reset'>> => {
    const deadlineMs = dependencies.config.resetTimeoutMs;
    const what = { user, action: workspaceReset.audit, grows: false, call: { verb: 'reset' }, deadlineMs } as const;
    resultOf('reset', await change(dependencies, what, context), 'uncertain');
    dependencies.quota.drop(user);
    return { reset: true };
  };
