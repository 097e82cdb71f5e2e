/**
 * Purpose: the content of a text file; of any other file only what it is.
 * Rights: the user's.
 * Called by: main.ts.
 * Fails: `symlink`, `is_directory`, `bad_target` (without opening it), what the walk refuses, `file_failed`.
 *
 * A reply always fits a frame: a byte is at most 6 characters of JSON, so 512 KiB, the largest `bytesMax` that
 * is taken, are at most 3 MiB.
 */
import { isUtf8 } from 'node:buffer';
import type { FsCalls, FsResults } from '../../contract/fs.ts';
import { atPlace, beneath } from '../beneath.ts';
import { firstBytes } from '../file.ts';
import { FsRefusal } from '../refusal.ts';

const without = (reason: 'binary' | 'too_large', size: number): FsResults['read'] => ({
  size: Math.min(size, Number.MAX_SAFE_INTEGER),
  text: false,
  content: null,
  reason,
});

/** Reads the file at a path. */
export const read = (home: number, { path, bytesMax, probeBytes }: FsCalls['read']): FsResults['read'] =>
  beneath(home, path, (place) =>
    atPlace(place, (file) => {
      const { stat } = file;
      if (stat.isSymbolicLink()) throw new FsRefusal('symlink');
      if (stat.isDirectory()) throw new FsRefusal('is_directory');
      if (!stat.isFile()) throw new FsRefusal('bad_target');
      if (stat.size > bytesMax) return without('too_large', stat.size);
      const bytes = firstBytes(file, bytesMax + 1);
      const size = bytes.length;
      if (size > bytesMax) return without('too_large', size);
      if (bytes.subarray(0, probeBytes).includes(0) || !isUtf8(bytes)) return without('binary', size);
      return { size, text: true, content: bytes.toString('utf8'), reason: null };
    }),
  );
