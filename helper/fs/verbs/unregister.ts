/**
 * Purpose: makes a repository ready for a worktree at a place where none is: what a removed folder or a killed git left
 * would keep git from making it.
 * Rights: the user's.
 * Called by: main.ts, after the scratch folder was made anew: what is in it counts as there.
 * Fails: `bad_target` for anything but folders on the way to the clone, `file_failed`. Whatever in the repository isn't
 * as git makes it stays.
 *
 * Only registrations of these two places go, locked ones too. Any other stays, even if its folder is gone: one that was
 * moved away for a while needs it.
 */
import { lstatSync, unlinkSync } from 'node:fs';
import { type FsCalls, type FsResults, scratchFolder, scratchNames } from '../../contract/fs.ts';
import { atPlace, beneathNames } from '../beneath.ts';
import { at, bytesOf, entriesOf, holding } from '../descriptor.ts';
import { within } from '../folders.ts';
import { ifThere, lookedAt, pathIn, pathOf } from '../pointers.ts';
import { withTrash } from '../trash.ts';

const worktreesName = 'worktrees';
/** Most registrations that are looked at. */
const registrationsMax = 10_000;

/** Whether nothing has this name; false too where the way to it can't be walked. */
const isAbsent = (root: number, path: string): boolean =>
  lookedAt(() => beneathNames(root, path.split('/'), (place) => atPlace(place, () => undefined))) === 'absent';

/** The places whose registrations go, as a `gitdir` file names them. */
const abandoned = (space: number, home: number, worktree: string): string[] => {
  const tree = `${scratchFolder}/${scratchNames.tree}`;
  return [
    ...(isAbsent(home, worktree) ? [`${pathOf(home)}/${worktree}/.git`] : []),
    ...(isAbsent(space, tree) ? [`${pathOf(space)}/${tree}/.git`] : []),
  ];
};

/** The names of the registrations that are of one of these places. */
const registrationsOf = (worktrees: number, places: readonly string[]): string[] => {
  const path = pathOf(worktrees);
  const isOne = (name: string): boolean =>
    holding(worktrees, name, ({ descriptor, stat }) => {
      const place = stat.isDirectory() ? pathIn(descriptor, 'gitdir', `${path}/${name}`) : undefined;
      return place !== undefined && places.includes(place);
    });
  const found: string[] = [];
  let seen = 0;
  for (const { name, entry } of entriesOf(worktrees)) {
    seen += 1;
    if (seen > registrationsMax) break;
    if (entry.isDirectory() && isOne(name)) found.push(name);
  }
  return found;
};

const clean = (space: number, worktrees: number, places: readonly string[]): void => {
  const names = registrationsOf(worktrees, places);
  if (names.length === 0) return;
  withTrash(space, (trash) => {
    for (const name of names) trash.take(worktrees, name);
  });
};

/** Removes a lock file beneath a held `.git`: nobody is at work there, since there is one writer per user. */
const unlock = (git: number, path: string): void => {
  const names = `${path}.lock`.split('/');
  const name = names.pop() ?? '';
  ifThere(() =>
    within(git, names, (folder) => {
      if (lstatSync(at(folder, name)).isFile()) unlinkSync(at(folder, name));
    }),
  );
};

/** Most files of packs that are looked at. */
const packFilesMax = 10_000;

/** Removes the packs that a killed git was still receiving: git itself would only do so after weeks. */
const removeHalfPacks = (git: number): void => {
  ifThere(() =>
    within(git, ['objects', 'pack'], (folder) => {
      const halves: string[] = [];
      let seen = 0;
      for (const { name, entry } of entriesOf(folder)) {
        seen += 1;
        if (seen > packFilesMax) break;
        if (entry.isFile() && name.startsWith('tmp_')) halves.push(name);
      }
      for (const name of halves) unlinkSync(at(folder, name));
    }),
  );
};

/** Unregisters a worktree that is gone, and takes lock files and halves of packs away. */
export const unregister = (
  space: number,
  home: number,
  { project, worktree, refs }: FsCalls['unregister'],
): FsResults['unregister'] => {
  within(home, ['repos', project, '.git'], (git) => {
    const isThere = lstatSync(at(git, worktreesName), { throwIfNoEntry: false })?.isDirectory() === true;
    if (isThere) within(git, [worktreesName], (found) => clean(space, found, abandoned(space, home, worktree)));
    removeHalfPacks(git);
    for (const path of ['shallow', 'packed-refs', ...refs.map(bytesOf)]) unlock(git, path);
  });
  return {};
};
