/**
 * Purpose: how a worktree and its repository name each other: the worktree's `.git` names a registration, and that
 * one's `gitdir` the worktree (gitrepository-layout(5), "worktrees").
 * Rights: the user's.
 * Called by: registrations.ts and the verbs about repositories.
 * Fails: with the error of the system call, or what the walk refuses.
 *
 * All of these files are the user's to write. The paths in them are compared as text, and only a way that was expected
 * is walked; one that points elsewhere does nothing.
 */
import { readlinkSync } from 'node:fs';
import { beneathNames } from './beneath.ts';
import { held, holding } from './descriptor.ts';
import { firstBytes } from './file.ts';
import { errnoOf, FsRefusal } from './refusal.ts';

/** Longest path in such a file, bytes (PATH_MAX and its prefix). */
const pointerBytesMax = 4_200;

/** A registration that is held, and that its worktree and it point at each other. */
export interface Registration {
  readonly descriptor: number;
  /** The folder that holds it, and its name there. */
  readonly folder: number;
  readonly name: string;
  /** The clone beneath `repos` that it belongs to. */
  readonly project: string;
  readonly path: string;
}

/** The absolute path of a held folder, a byte string. */
export const pathOf = (folder: number): string => readlinkSync(held(folder), 'latin1');

export const same = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((name, index) => name === b[index]);

/** What `act` finds, or nothing where something on the way isn't there or isn't what it would have to be. */
export const ifThere = <T>(act: () => T): T | undefined => {
  try {
    return act();
  } catch (error) {
    const expected = ['ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'EACCES'];
    if (error instanceof FsRefusal || expected.includes(errnoOf(error) ?? '')) return undefined;
    throw error;
  }
};

/** What a look finds; something that it can't get through to is in the way of whatever comes there. */
export const lookedAt = <T>(look: () => T): T | 'absent' | 'other' => {
  try {
    return look();
  } catch (error) {
    if (error instanceof FsRefusal) return error.code === 'not_found' ? 'absent' : 'other';
    if (errnoOf(error) === 'EACCES') return 'other';
    throw error;
  }
};

/**
 * The only line of a small regular file; undefined for anything else. Git takes the whole of it: a second line would be
 * part of the path that it goes to.
 */
const lineOf = (folder: number, name: string): string | undefined =>
  ifThere(() =>
    holding(folder, name, (file) => {
      if (!file.stat.isFile() || file.stat.size > pointerBytesMax) return undefined;
      return /^([^\n]+)\n?$/.exec(firstBytes(file, pointerBytesMax).toString('latin1'))?.[1];
    }),
  );

/**
 * A path that is meant from a folder, as an absolute one. ".." behind a name has none: the name could be a link, and then
 * git would come out elsewhere.
 */
const absolute = (base: string, path: string): string | undefined => {
  let down = path.startsWith('/');
  const names = down ? [] : base.slice(1).split('/');
  for (const part of path.split('/')) {
    if (part === '' || part === '.') continue;
    if (part === '..' && (down || names.pop() === undefined)) return undefined;
    if (part === '..') continue;
    down = true;
    names.push(part);
  }
  return `/${names.join('/')}`;
};

/** The absolute path that the file of a folder holds, the folder's own being `base`; undefined for anything else. */
export const pathIn = (folder: number, name: string, base: string): string | undefined => {
  const line = lineOf(folder, name);
  return line === undefined ? undefined : absolute(base, line);
};

/** Whether these are the names of a registration. */
const isRegistration = (names: readonly string[]): boolean =>
  names.length === 5 && names[0] === 'repos' && names[2] === '.git' && names[3] === 'worktrees';

/** The names from the home of what a worktree's `.git` names; undefined where that can't be a registration. */
const registrationNames = (homePath: string, worktree: string, folder: number): string[] | undefined => {
  const [, pointer] = /^gitdir: (.+)$/.exec(lineOf(folder, '.git') ?? '') ?? [];
  const path = pointer === undefined ? undefined : absolute(worktree, pointer);
  if (path?.startsWith(`${homePath}/`) !== true) return undefined;
  const names = path.slice(homePath.length + 1).split('/');
  return isRegistration(names) ? names : undefined;
};

/**
 * Hands over the registration of a worktree.
 * @param worktree the absolute path that it is known by
 * @param folder where it is now, held
 * @returns undefined when there is none, or it doesn't point back
 * @throws FsRefusal or the error of a system call when what it names can't be reached
 */
export const withRegistration = <T>(
  home: number,
  worktree: string,
  folder: number,
  act: (registration: Registration) => T,
): T | undefined => {
  const homePath = pathOf(home);
  const wanted = registrationNames(homePath, worktree, folder);
  if (wanted === undefined) return undefined;
  const [, project = '', , , name = ''] = wanted;
  const path = `${homePath}/${wanted.join('/')}`;
  return beneathNames(home, wanted, ({ folder: parent, names }) => {
    // A link on the way would make it another repository's.
    if (!same(names, wanted)) return undefined;
    return holding(parent, name, ({ descriptor, stat }) => {
      const back = stat.isDirectory() ? pathIn(descriptor, 'gitdir', path) : undefined;
      return back === `${worktree}/.git` ? act({ descriptor, folder: parent, name, project, path }) : undefined;
    });
  });
};

/** Whether a registration is of exactly this project, and takes git to no other repository. */
export const isOf = (home: number, project: string, registration: Registration): boolean =>
  registration.project === project &&
  pathIn(registration.descriptor, 'commondir', registration.path) === `${pathOf(home)}/repos/${project}/.git`;
