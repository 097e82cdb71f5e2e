/**
 * Purpose: empties the space and makes its four folders anew.
 * Rights: the user's.
 * Called by: main.ts; the only verb that needs no home.
 * Fails: `reset_failed`; at whatever step it ended, the next reset finds what is left and goes on.
 */
import { mkdirSync, unlinkSync } from 'node:fs';
import type { FsResults } from '../../contract/fs.ts';
import { at, entriesOf, holding } from '../descriptor.ts';
import { FsRefusal } from '../refusal.ts';
import { type Trash, trashName, withTrash } from '../trash.ts';

/** How often the space is looked at again when it doesn't stay empty: somebody is filling it. */
const passesMax = 5;

/** Moves everything out of the way; returns how much that was. */
const clearOnce = (space: number, trash: Trash): number => {
  let cleared = 0;
  for (const { name, entry } of entriesOf(space)) {
    if (name === trashName) continue;
    cleared += 1;
    if (entry.isDirectory()) trash.take(space, name);
    else unlinkSync(at(space, name));
  }
  return cleared;
};

const clear = (space: number, trash: Trash): void => {
  for (let passes = 0; clearOnce(space, trash) > 0; passes += 1) {
    if (passes === passesMax) throw new FsRefusal('reset_failed');
  }
};

/** The folders of a new space; the worker makes the same four. */
const makeFolders = (space: number): void => {
  const make = (folder: number, name: string) => mkdirSync(at(folder, name), { mode: 0o700 });
  make(space, 'tmp');
  make(space, 'home');
  holding(space, 'home', ({ descriptor }) => {
    make(descriptor, 'repos');
    make(descriptor, 'work');
  });
};

/** Resets the space. */
export const reset = (space: number): FsResults['reset'] => {
  withTrash(space, (trash) => {
    clear(space, trash);
    // Before the long part: if that ends half-way, the space is whole, and only the trash is left for the next use.
    makeFolders(space);
  });
  return {};
};
