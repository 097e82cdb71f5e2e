/**
 * Purpose: takes git's registrations of deleted worktrees away with them; left behind, they keep git from making the
 * same worktree again.
 * Rights: the user's.
 * Called by: the verb delete, with the folder in the trash already.
 * Fails: with the error of the system call. Whatever is no worktree, or not registered, is no failure.
 *
 * Both files are the user's to write. One that names another repository's registration does nothing: the
 * worktree's `.git` and the registration's `gitdir` have to point at each other (gitrepository-layout(5), "worktrees").
 */
import { readlinkSync } from 'node:fs';
import { beneathNames, type Place } from './beneath.ts';
import { entriesOf, held, holding } from './descriptor.ts';
import { firstBytes } from './file.ts';
import { errnoOf, FsRefusal } from './refusal.ts';
import { openUp, type Trash } from './trash.ts';

/** Longest path in such a file, bytes (PATH_MAX and its prefix). */
const pointerBytesMax = 4_200;

/** What `act` finds, or nothing where something on the way isn't there or isn't what it would have to be. */
const ifThere = <T>(act: () => T): T | undefined => {
  try {
    return act();
  } catch (error) {
    if (error instanceof FsRefusal || ['ENOENT', 'ENOTDIR', 'EACCES'].includes(errnoOf(error) ?? '')) return undefined;
    throw error;
  }
};

/** The first line of a small regular file; undefined for anything else. */
const lineOf = (folder: number, name: string): string | undefined =>
  ifThere(() =>
    holding(folder, name, (file) => {
      if (!file.stat.isFile() || file.stat.size > pointerBytesMax) return undefined;
      return firstBytes(file, pointerBytesMax).toString('latin1').split('\n')[0];
    }),
  );

/** A path in one of git's files as names from the home; undefined where it isn't beneath it. Compared, never walked. */
const namesOf = (homePath: string, base: readonly string[], path: string): string[] | undefined => {
  if (path.startsWith('/') && !path.startsWith(`${homePath}/`)) return undefined;
  const names = path.startsWith('/') ? [] : [...base];
  for (const part of (path.startsWith('/') ? path.slice(homePath.length) : path).split('/')) {
    if (part === '..' && names.pop() === undefined) return undefined;
    if (part !== '' && part !== '.' && part !== '..') names.push(part);
  }
  return names;
};

const same = (a: readonly string[], b: readonly string[] | undefined): boolean =>
  a.length === b?.length && a.every((name, index) => name === b[index]);

/** Whether these are the names of a registration. */
const isRegistration = (names: readonly string[]): boolean =>
  names.length === 5 && names[0] === 'repos' && names[2] === '.git' && names[3] === 'worktrees';

/** Takes the registration of one worktree, if there is one. */
const takeRegistration = (trash: Trash, home: number, worktree: readonly string[], folder: number): void => {
  const homePath = readlinkSync(held(home), 'latin1');
  const [, pointer] = /^gitdir: (.+)$/.exec(lineOf(folder, '.git') ?? '') ?? [];
  const wanted = pointer === undefined ? undefined : namesOf(homePath, worktree, pointer);
  if (wanted === undefined || !isRegistration(wanted)) return;
  const pointsBack = ({ folder: parent, name = '', names }: Place): boolean =>
    // A link on the way would make it another repository's.
    same(names, wanted) &&
    holding(parent, name, ({ descriptor, stat }) => {
      const back = stat.isDirectory() ? lineOf(descriptor, 'gitdir') : undefined;
      return back !== undefined && same([...worktree, '.git'], namesOf(homePath, wanted, back));
    });
  ifThere(() =>
    beneathNames(home, wanted, (place) => {
      if (pointsBack(place)) trash.take(place.folder, place.name ?? '');
    }),
  );
};

/** Takes the registrations of all worktrees in a held conversation folder. */
const takeAll = (trash: Trash, home: number, conversation: readonly string[], folder: number): void => {
  for (const { name, entry } of entriesOf(folder)) {
    if (!entry.isDirectory()) continue;
    holding(folder, name, (worktree) => {
      if (!worktree.stat.isDirectory()) return;
      openUp(worktree);
      takeRegistration(trash, home, [...conversation, name], worktree.descriptor);
    });
  }
};

/**
 * Takes the registrations of a worktree folder (`work/<conversation>/<project>`), or of all in a conversation folder.
 * @param names where the folder was
 * @param own its name in the trash
 */
export const takeRegistrations = (trash: Trash, home: number, names: readonly string[], own: string): void => {
  if (names[0] !== 'work' || names.length > 3) return;
  holding(trash.folder, own, (deleted) => {
    // Swapped for something else before it was moved.
    if (!deleted.stat.isDirectory()) return;
    openUp(deleted);
    const take = names.length === 3 ? takeRegistration : takeAll;
    take(trash, home, names, deleted.descriptor);
  });
};
