/**
 * Purpose: ends what a dead supervisor left of a user.
 * Rights: none of its own; it asks the spawner.
 * Called by: runs.ts, and helpers/helper-pool.ts for a helper that was changing something.
 * Fails: by asking again; whoever waits keeps the user locked meanwhile.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { endUser } from './run.ts';
import type { Spawner } from './spawner.ts';

/** Between two attempts, ms. */
const retryMs = 500;

/**
 * Resolves when the spawner has seen that no process of this user is left, or when `stopping` says that the spawner
 * is about to end everything anyway.
 */
export const endLost = async (spawner: Spawner, uid: number, log: Logger, stopping: () => boolean): Promise<void> => {
  for (let attempt = 1; !stopping(); attempt += 1) {
    const ended = await spawner.ready().then(
      () => endUser(spawner.socketPath, uid),
      () => false,
    );
    if (ended) return;
    log.error({ attempt }, 'what was lost could not be ended yet; its user stays locked');
    await delay(retryMs);
  }
};
