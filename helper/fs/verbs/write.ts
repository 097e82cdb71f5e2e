/**
 * Purpose: makes a file, or replaces one, in one step for whoever reads it.
 * Rights: the user's.
 * Called by: main.ts, with the space cleared of what an earlier write left.
 * Fails: `symlink`, `is_directory`, `bad_target`, what the walk refuses; `write_failed` with the old content intact.
 */
import type { FsCalls, FsResults } from '../../contract/fs.ts';
import { beneath, type Place } from '../beneath.ts';
import { holding } from '../descriptor.ts';
import { newMode } from '../file.ts';
import { errnoOf, FsRefusal } from '../refusal.ts';
import { replaceFile } from '../replace.ts';
import { isManaged } from '../space.ts';

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
    replaceFile(space, place.folder, name, mode, bytes);
    return { size: bytes.length };
  });
