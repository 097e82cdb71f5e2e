/**
 * Purpose: makes a file, or replaces one, in one step for whoever reads it.
 * Rights: the user's.
 * Called by: main.ts, with the space cleared of what an earlier write left.
 * Fails: `symlink`, `is_directory`, `bad_target`, what the walk refuses; `write_failed` with the old content intact.
 */
import { closeSync, constants, fchmodSync, openSync, renameSync, unlinkSync, writeSync } from 'node:fs';
import type { FsCalls, FsResults } from '../../contract/fs.ts';
import { beneath, type Place } from '../beneath.ts';
import { at, holding } from '../descriptor.ts';
import { errnoOf, FsRefusal } from '../refusal.ts';
import { isManaged, unfinishedName } from '../space.ts';

/** Mode of a new file. */
const newMode = 0o600;

/** The mode that the file will have; what is there and is no file is refused. */
const modeFor = (folder: number, name: string): number => {
  try {
    return holding(folder, name, ({ stat }) => {
      if (stat.isSymbolicLink()) throw new FsRefusal('symlink');
      if (stat.isDirectory()) throw new FsRefusal('is_directory');
      if (!stat.isFile()) throw new FsRefusal('bad_target');
      // As a write by a program would, this takes set-id bits away.
      return stat.mode & 0o777;
    });
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return newMode;
    // No file can have such a name.
    if (errnoOf(error) === 'ENAMETOOLONG') throw new FsRefusal('not_found');
    throw error;
  }
};

const fill = (path: Buffer, mode: number, content: Buffer): void => {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
  const descriptor = openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, newMode);
  try {
    for (let written = 0; written < content.length; ) written += writeSync(descriptor, content, written);
    fchmodSync(descriptor, mode);
  } finally {
    closeSync(descriptor);
  }
};

/**
 * The new content is made ready in the space, outside the home: no listing, tool or git sees it, and whatever uses
 * the space next finds what a crash left, wherever in the home it was meant for. rename(2) replaces what has the
 * name, itself: a link that was swapped in is not followed.
 */
const replace = (space: number, folder: number, name: string, mode: number, content: Buffer): void => {
  const unfinished = at(space, unfinishedName);
  try {
    fill(unfinished, mode, content);
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

const nameOf = ({ name, names }: Place): string => {
  if (name === undefined || isManaged(names)) throw new FsRefusal('bad_target');
  return name;
};

/** Writes the file at a path. */
export const write = (space: number, home: number, { path, content }: FsCalls['write']): FsResults['write'] =>
  beneath(home, path, (place) => {
    const name = nameOf(place);
    const mode = modeFor(place.folder, name);
    const bytes = Buffer.from(content, 'utf8');
    replace(space, place.folder, name, mode, bytes);
    return { size: bytes.length };
  });
