/**
 * Purpose: removes what git workflows of an earlier life of this worker left in the scratch folders of their users.
 * Rights: root; everything is done by the fs helpers, as the users.
 * Called by: main.ts, before the first link.
 * Fails: never. What can't be removed now is removed by the user's next workflow or change of a file.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Interrupted } from '../ledger/record.ts';
import type { FileHelpers } from '../operations/file-helpers.ts';

/** Nobody is served meanwhile, ms. */
const limitMs = 3_000;

/** Whether an operation is a git workflow: the names of the table's rows. */
const isWorkflow = ({ operation }: Interrupted): boolean => operation.startsWith('repo.');

/** Clears the scratch folders of all whose workflow was interrupted. Resolves when that is done, or took too long. */
export const clearInterrupted = async (
  interrupted: readonly Interrupted[],
  helpers: Pick<FileHelpers, 'call'>,
): Promise<void> => {
  const users = [...new Set(interrupted.filter(isWorkflow).map(({ user }) => user))];
  const stopping = new AbortController();
  const limits = { deadlineMs: limitMs, signal: stopping.signal };
  const cleared = users.map((user) => helpers.call(user, { verb: 'clear' }, limits).catch(() => undefined));
  await Promise.race([Promise.all(cleared), delay(limitMs, undefined, { ref: false })]);
  stopping.abort();
};
