/**
 * Purpose: what the helper itself keeps in a space beside the home, and the folders that every home has.
 * Rights: the user's.
 * Called by: the verbs that change something, and main.ts before each of them.
 * Fails: with the error of the system call.
 */
import { lstatSync, unlinkSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { scratchFolder } from '../contract/fs.ts';
import { at, holding } from './descriptor.ts';
import { openUp, trashName, withTrash } from './trash.ts';

/** A file that is being written; there is one at a time, since there is one writer per user. */
export const unfinishedName = '.unfinished';

/** The folder for temporary files, and the scratch folder of git workflows in it. */
export const tmpName = dirname(scratchFolder);
export const scratchName = basename(scratchFolder);

/** Whether these are the home, or one of the folders that the service works with: kept, whatever is asked. */
export const isManaged = (names: readonly string[]): boolean =>
  names.length === 0 || (names.length === 1 && (names[0] === 'repos' || names[0] === 'work'));

const isThere = (folder: number, name: string) => lstatSync(at(folder, name), { throwIfNoEntry: false });

/** Hands over the folder that a workflow left something in, if one did. */
const withScratch = (space: number, act: (tmp: number) => void): void => {
  if (isThere(space, tmpName) === undefined) return;
  holding(space, tmpName, (tmp) => {
    if (!tmp.stat.isDirectory()) return;
    // Closed by its user, it would hide what was left.
    openUp(tmp);
    if (isThere(tmp.descriptor, scratchName) !== undefined) act(tmp.descriptor);
  });
};

/** Removes what a crash or a deadline left of an earlier write, delete, reset or git workflow. */
export const clearLeftovers = (space: number): void => {
  const unfinished = isThere(space, unfinishedName);
  if (unfinished?.isDirectory() === false) unlinkSync(at(space, unfinishedName));
  // Only the user can have made a folder of that name; it would be in the way.
  if (unfinished?.isDirectory() === true) withTrash(space, (trash) => trash.take(space, unfinishedName));
  withScratch(space, (tmp) => withTrash(space, (trash) => trash.take(tmp, scratchName)));
  if (isThere(space, trashName) !== undefined) withTrash(space, () => undefined);
};
