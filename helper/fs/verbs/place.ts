/**
 * Purpose: moves what a git workflow made in the scratch folder to where it belongs, in one step: a clone, or a worktree
 * with its registration.
 * Rights: the user's.
 * Called by: main.ts, with everything of the user's but this helper gone.
 * Fails: `exists` when something is there; `bad_target` when the tree is no folder, or no worktree of that project, or
 * the way is none of real folders, or there is no tree; `file_failed`. Nothing is moved then.
 *
 * The registration gets the new path first: a crash before the move leaves one whose folder is missing, which the next
 * try takes away; the move alone makes the worktree be there.
 */
import { lstatSync, renameSync, rmdirSync } from 'node:fs';
import { type FsCalls, type FsResults, scratchFolder, scratchNames } from '../../contract/fs.ts';
import type { Place } from '../beneath.ts';
import { at, type Held, holding } from '../descriptor.ts';
import { newMode } from '../file.ts';
import { ensureFolder, within } from '../folders.ts';
import { ifThere, isOf, pathOf, withRegistration } from '../pointers.ts';
import { errnoOf, FsRefusal } from '../refusal.ts';
import { replaceFile } from '../replace.ts';
import { clearLeftovers } from '../space.ts';

const removeQuietly = (path: Buffer): void => {
  try {
    rmdirSync(path);
  } catch {
    // An empty folder is nobody's harm; what failed before is what is told.
  }
};

/** Goes down by real folders, those that are missing made; takes those away again when `act` fails. */
const withFolders = <T>(folder: number, names: readonly string[], act: (folder: number) => T): T => {
  const [name, ...rest] = names;
  if (name === undefined) return act(folder);
  const made = ensureFolder(folder, name);
  try {
    return within(folder, [name], (found) => withFolders(found, rest, act));
  } catch (error) {
    if (made) removeQuietly(at(folder, name));
    throw error;
  }
};

/** Hands over the place that the tree goes to. */
const atTarget = (home: number, path: string, act: (place: Place) => void): void => {
  const names = path.split('/');
  withFolders(home, names.slice(0, -1), (folder) => act({ folder, name: names.at(-1), names }));
};

interface Tree {
  readonly space: number;
  readonly home: number;
  /** The folder itself, held. */
  readonly descriptor: number;
  readonly project: string;
}

/** Lets a worktree and its registration name each other as they will lie. @throws FsRefusal `bad_target` */
const repoint = ({ space, home, descriptor, project }: Tree, names: readonly string[]): void => {
  const path = `${pathOf(space)}/${scratchFolder}/${scratchNames.tree}`;
  const isWorktree = ifThere(() => withRegistration(home, path, descriptor, (found) => isOf(home, project, found)));
  if (isWorktree !== true) throw new FsRefusal('bad_target');
  withRegistration(home, path, descriptor, (registration) => {
    const line = (text: string) => Buffer.from(`${text}\n`, 'latin1');
    const target = `${pathOf(home)}/${names.join('/')}/.git`;
    replaceFile(space, registration.descriptor, 'gitdir', newMode, line(target));
    // A relative path, as a newer git may write it, would lead elsewhere from there.
    replaceFile(space, descriptor, '.git', newMode, line(`gitdir: ${registration.path}`));
  });
};

/** A filter of the user's can have removed it. @throws FsRefusal `bad_target` */
const treeIn = (scratch: number, act: (tree: Held) => void): void => {
  if (lstatSync(at(scratch, scratchNames.tree), { throwIfNoEntry: false }) === undefined)
    throw new FsRefusal('bad_target');
  holding(scratch, scratchNames.tree, act);
};

/** Places the tree. */
export const place = (space: number, home: number, { path, project }: FsCalls['place']): FsResults['place'] => {
  within(space, scratchFolder.split('/'), (scratch) =>
    treeIn(scratch, ({ descriptor, stat }) => {
      if (!stat.isDirectory()) throw new FsRefusal('bad_target');
      atTarget(home, path, ({ folder, name = '', names }) => {
        // rename(2) would replace an empty folder. Nobody can make one meanwhile: there is one writer per user.
        if (lstatSync(at(folder, name), { throwIfNoEntry: false })) throw new FsRefusal('exists');
        if (project !== null) repoint({ space, home, descriptor, project }, names);
        renameSync(at(scratch, scratchNames.tree), at(folder, name));
      });
    }),
  );
  try {
    clearLeftovers(space);
  } catch (error) {
    // It is placed, and that is what was asked for; the next use looks again.
    if (errnoOf(error) === undefined) throw error;
  }
  return {};
};
