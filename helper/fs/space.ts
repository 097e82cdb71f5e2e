/**
 * Purpose: what the helper itself keeps in a space beside the home, and the folders that every home has.
 * Rights: the user's.
 * Called by: the verbs that change something, and main.ts before each of them.
 * Fails: with the error of the system call.
 */
import { lstatSync, unlinkSync } from 'node:fs';
import { at } from './descriptor.ts';
import { trashName, withTrash } from './trash.ts';

/** A file that is being written; there is one at a time, since there is one writer per user. */
export const unfinishedName = '.unfinished';

/** Whether these are the home, or one of the folders that the service works with: kept, whatever is asked. */
export const isManaged = (names: readonly string[]): boolean =>
  names.length === 0 || (names.length === 1 && (names[0] === 'repos' || names[0] === 'work'));

const isThere = (space: number, name: string) => lstatSync(at(space, name), { throwIfNoEntry: false });

/** Removes what a crash or a deadline left of an earlier write, delete or reset. */
export const clearLeftovers = (space: number): void => {
  const unfinished = isThere(space, unfinishedName);
  if (unfinished?.isDirectory() === false) unlinkSync(at(space, unfinishedName));
  // Only the user can have made a folder of that name; it would be in the way.
  const inTheWay = unfinished?.isDirectory() === true;
  if (!inTheWay && isThere(space, trashName) === undefined) return;
  withTrash(space, (trash) => {
    if (inTheWay) trash.take(space, unfinishedName);
  });
};
