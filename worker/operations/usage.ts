/**
 * Purpose: the handler of `POST /v1/usage`.
 * Rights: none of its own; asks quota.ts.
 * Called by: dispatch.ts, with params that passed the schema.
 * Fails: with the refusals of quota.ts.
 */
import type { Params, Result } from '../../protocol/operations/index.ts';
import type { Quota } from '../quota.ts';

/** Makes the handler of `POST /v1/usage`. It waits for no lock. */
export const usageHandler =
  (quota: Quota) =>
  async ({ user }: Params<'usage'>): Promise<Result<'usage'>> => {
    const report = await quota.measure(user);
    return {
      user,
      ...report,
      top: [...report.top],
      groups: report.groups.map(({ name, ...share }) => ({ path: name, ...share })),
      limitBytes: quota.limitBytes,
      over: quota.isOver(report),
    };
  };
