/**
 * Purpose: ways of real folders only, where a link has no business: the helper's own places, and within a repository.
 * Rights: the user's.
 * Called by: the verbs about repositories, and what they share.
 * Fails: `bad_target` for anything but a folder on the way; else with the error of the system call.
 */
import { mkdirSync } from 'node:fs';
import { at, holding } from './descriptor.ts';
import { errnoOf, FsRefusal } from './refusal.ts';

/** Hands over the folder at the end of a way, held. */
export const within = <T>(folder: number, names: readonly string[], act: (folder: number) => T): T => {
  const [name, ...rest] = names;
  if (name === undefined) return act(folder);
  return holding(folder, name, ({ descriptor, stat }) => {
    if (!stat.isDirectory()) throw new FsRefusal('bad_target');
    return within(descriptor, rest, act);
  });
};

/** Makes a folder for its owner alone. */
export const makeFolder = (folder: number, name: string): void => mkdirSync(at(folder, name), { mode: 0o700 });

/** The same, and hands it over. */
export const inNewFolder = <T>(folder: number, name: string, act: (made: number) => T): T => {
  makeFolder(folder, name);
  return within(folder, [name], act);
};

/** Makes a folder where nothing is; says whether it did. */
export const ensureFolder = (folder: number, name: string): boolean => {
  try {
    makeFolder(folder, name);
    return true;
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return false;
    throw error;
  }
};
