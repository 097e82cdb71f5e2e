/**
 * Purpose: gives a name a new content in one step.
 * Rights: the user's.
 * Called by: the verbs write and place, with the space cleared of what an earlier use left.
 * Fails: `is_directory`; else with the error of the system call, and the old content is intact.
 *
 * The new content is made ready in the space, outside the home: no listing, tool or git sees it, and whatever uses
 * the space next finds what a crash left, wherever in the home it was meant for. rename(2) replaces what has the
 * name, itself: a link that was swapped in is not followed.
 */
import { renameSync, unlinkSync } from 'node:fs';
import { at } from './descriptor.ts';
import { makeFile } from './file.ts';
import { errnoOf, FsRefusal } from './refusal.ts';
import { unfinishedName } from './space.ts';

/** Makes or replaces a file in a held folder. */
export const replaceFile = (space: number, folder: number, name: string, mode: number, content: Buffer): void => {
  const unfinished = at(space, unfinishedName);
  try {
    makeFile(unfinished, mode, content);
    renameSync(unfinished, at(folder, name));
  } catch (error) {
    try {
      unlinkSync(unfinished);
    } catch {
      // Never made, or the user's doing; the next use looks again.
    }
    throw errnoOf(error) === 'EISDIR' ? new FsRefusal('is_directory') : error;
  }
};
