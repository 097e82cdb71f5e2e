/**
 * Purpose: removes whole trees, however deep and whatever their modes: a folder is moved into one flat folder of the
 * space and emptied there; what lies deep in it is moved beside it first. No path grows, and the depth is bounded.
 * Rights: the user's.
 * Called by: the verbs delete and reset, and space.ts for what an earlier use left.
 * Fails: with the error of the system call; what is left is found by the next use.
 */

import { randomBytes } from 'node:crypto';
import { chmodSync, closeSync, mkdirSync, renameSync, rmdirSync, unlinkSync } from 'node:fs';
import { at, entriesOf, type Held, held, hold, holding } from './descriptor.ts';
import { errnoOf } from './refusal.ts';

/** The folder, beside the home: no tool's listing shows what is on its way out. */
export const trashName = '.trash';

/** How deep a folder is emptied where it lies: each level holds two descriptors. */
const depthMax = 16;

/** How often a folder that does not stay empty is looked at again: somebody is filling it. */
const passesMax = 5;

/** Runs a step that may find its work done by another. */
const unless = (errno: string, step: () => void): boolean => {
  try {
    step();
    return true;
  } catch (error) {
    if (errnoOf(error) === errno) return false;
    throw error;
  }
};

/** Gives the owner all rights in a held folder: through the descriptor, since chmod(2) on a name follows links. */
export const openUp = ({ descriptor, stat }: Held): void => {
  if ((stat.mode & 0o700) !== 0o700) chmodSync(held(descriptor), 0o700);
};

/** Finds the folder or makes it; whatever else has its name is removed first. */
const holdTrash = (space: number): Held => {
  const path = at(space, trashName);
  const made = unless('EEXIST', () => mkdirSync(path, { mode: 0o700 }));
  const found = hold(space, trashName);
  if (found.stat.isDirectory()) return found;
  closeSync(found.descriptor);
  if (made) throw new Error('the trash was swapped');
  unlinkSync(path);
  mkdirSync(path, { mode: 0o700 });
  return hold(space, trashName);
};

/** The flat folder while it is in use. */
export class Trash {
  readonly #folder: number;
  /** Names of its own that nothing left over can have. */
  readonly #prefix = `${randomBytes(8).toString('hex')}-`;
  /** Numbers of what was taken in and is still there. */
  readonly #pending: number[] = [];
  #count = 0;

  constructor(folder: number) {
    this.#folder = folder;
  }

  /** The held folder itself. */
  get folder(): number {
    return this.#folder;
  }

  /** Moves what has a name into the trash, itself, and returns its name there. All or nothing. */
  take(folder: number, name: string): string {
    this.#count += 1;
    const own = `${this.#prefix}${this.#count}`;
    const move = () => renameSync(at(folder, name), at(this.#folder, own));
    // A folder that changes its parent must be writable itself (rename(2): its ".." changes).
    if (!unless('EACCES', move)) holding(folder, name, (found) => this.#moveClosed(found, move));
    this.#pending.push(this.#count);
    return own;
  }

  /** Removes all that is in it, of earlier uses too. */
  empty(): void {
    this.#drain();
    for (const { name, entry } of entriesOf(this.#folder)) {
      if (!name.startsWith(this.#prefix)) this.#remove(this.#folder, name, entry.isDirectory(), 0);
    }
    this.#drain();
  }

  #moveClosed(found: Held, move: () => void): void {
    const { descriptor, stat } = found;
    if (stat.isDirectory()) openUp(found);
    try {
      move();
    } catch (error) {
      if (stat.isDirectory()) chmodSync(held(descriptor), stat.mode & 0o7777);
      throw error;
    }
  }

  #drain(): void {
    for (let next = this.#pending.pop(); next !== undefined; next = this.#pending.pop()) {
      this.#remove(this.#folder, `${this.#prefix}${next}`, true, 0);
    }
  }

  /** Removes one name, and beneath a folder all that is in it; what lies too deep is taken into the trash first. */
  #remove(folder: number, name: string, isFolder: boolean, depth: number): void {
    const path = at(folder, name);
    if (!isFolder && unless('EISDIR', () => unlinkSync(path))) return;
    if (depth === depthMax) {
      this.take(folder, name);
      return;
    }
    holding(folder, name, (found) => {
      if (found.stat.isDirectory()) this.#removeFolder(found, path, depth);
      else unlinkSync(path);
    });
  }

  #removeFolder(found: Held, path: Buffer, depth: number): void {
    openUp(found);
    for (let passes = 0; passes < passesMax; passes += 1) {
      for (const { name, entry } of entriesOf(found.descriptor)) {
        this.#remove(found.descriptor, name, entry.isDirectory(), depth + 1);
      }
      if (unless('ENOTEMPTY', () => rmdirSync(path))) return;
    }
    rmdirSync(path);
  }
}

/** Runs `act` with the trash of a space, then empties and removes it, with all that an earlier use left. */
export const withTrash = (space: number, act: (trash: Trash) => void): void => {
  const { descriptor, ...found } = holdTrash(space);
  try {
    openUp({ descriptor, ...found });
    const trash = new Trash(descriptor);
    try {
      act(trash);
    } finally {
      // Also when only some of it could be taken: what was is emptied, and an empty folder is no left-over.
      trash.empty();
      rmdirSync(at(space, trashName));
    }
  } finally {
    closeSync(descriptor);
  }
};
