/**
 * Purpose: the handler of `POST /v1/workspace/reset`.
 * Rights: root with the three capabilities, used through spaces.ts and the pool only; no path is touched here.
 * Called by: dispatch.ts, with params that passed the schema.
 * Fails: with `reset_failed` where the helper can't finish; the next reset goes on.
 */
import { Refusal } from '../../protocol/errors.ts';
import type { Params, Result } from '../../protocol/operations/index.ts';
import { workspaceReset } from '../../protocol/operations/workspace-reset.ts';
import type { HandlerContext } from '../handlers.ts';
import { type FileDependencies, locked } from './file-helpers.ts';
import { resultOf } from './fs-results.ts';

/** A helper that could not do anything at all is a reset that could not be finished. */
const asReset = (error: unknown): unknown =>
  error instanceof Refusal && error.code === 'file_failed' ? new Refusal('reset_failed') : error;

/** Makes the handler of `POST /v1/workspace/reset`. */
export const resetHandler =
  (dependencies: FileDependencies) =>
  ({ user }: Params<'workspace.reset'>, context: HandlerContext): Promise<Result<'workspace.reset'>> => {
    const { config, helpers } = dependencies;
    return locked(dependencies, user, workspaceReset.audit, context, async () => {
      try {
        const options = { deadlineMs: config.resetTimeoutMs, signal: context.signal };
        resultOf('reset', await helpers.call(user, { verb: 'reset' }, options), 'uncertain');
        return { reset: true };
      } catch (error) {
        throw asReset(error);
      } finally {
        // However it ended: what they hold belongs to the space as it was.
        helpers.discard(user);
      }
    });
  };
