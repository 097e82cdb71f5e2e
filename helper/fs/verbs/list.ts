/**
 * Purpose: the entries of a folder: folders first, then by name (byte order).
 * Rights: the user's.
 * Called by: main.ts.
 * Fails: `symlink`, `bad_target`, what the walk refuses, `file_failed`; a folder that can't be read to its end is
 * never told as a shorter one.
 *
 * A reply always fits a frame: a name of 255 bytes (NAME_MAX) is at most 1,530 characters of JSON, an entry at most
 * 130 more, so 2,000 entries are at most 3.4 MB.
 */
import { lstatSync, type Stats } from 'node:fs';
import type { FsCalls, FsEntry, FsResults } from '../../contract/fs.ts';
import { atPlace, beneath } from '../beneath.ts';
import { at, entriesOf, textOf } from '../descriptor.ts';
import { errnoOf, FsRefusal } from '../refusal.ts';

/** What RFC 3339 can say, ms: a user can set times far beyond. */
const timeMin = Date.parse('0000-01-01T00:00:00.000Z');
const timeMax = Date.parse('9999-12-31T23:59:59.999Z');

interface Seen {
  readonly name: string;
  readonly isFolder: boolean;
}

const inOrder = (a: Seen, b: Seen): number => {
  if (a.isFolder !== b.isFolder) return a.isFolder ? -1 : 1;
  return a.name < b.name ? -1 : 1;
};

/** The first entries in order, and whether there are more. Holds twice as many at most. */
const firstOf = (folder: number, most: number): { readonly first: Seen[]; readonly more: boolean } => {
  let first: Seen[] = [];
  let count = 0;
  for (const { name, entry } of entriesOf(folder)) {
    count += 1;
    first.push({ name, isFolder: entry.isDirectory() });
    if (first.length >= 2 * most) first = first.sort(inOrder).slice(0, most);
  }
  return { first: first.sort(inOrder).slice(0, most), more: count > most };
};

const kindOf = (stat: Stats): FsEntry['kind'] => {
  if (stat.isDirectory()) return 'dir';
  if (stat.isSymbolicLink()) return 'symlink';
  return stat.isFile() ? 'file' : 'other';
};

/** undefined for one that is gone by now. */
const statOf = (folder: number, name: string): Stats | undefined => {
  try {
    return lstatSync(at(folder, name));
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
};

const entryOf = (name: string, stat: Stats): FsEntry => ({
  name: textOf(name),
  kind: kindOf(stat),
  size: Math.min(stat.size, Number.MAX_SAFE_INTEGER),
  modified: new Date(Math.min(Math.max(stat.mtimeMs, timeMin), timeMax)).toISOString(),
});

/** Lists the folder at a path. */
export const list = (home: number, { path, entriesMax }: FsCalls['list']): FsResults['list'] =>
  beneath(home, path, (place) =>
    atPlace(place, ({ descriptor, stat }) => {
      if (stat.isSymbolicLink()) throw new FsRefusal('symlink');
      if (!stat.isDirectory()) throw new FsRefusal('bad_target');
      const { first, more } = firstOf(descriptor, entriesMax);
      const found = first.flatMap(({ name }) => {
        const now = statOf(descriptor, name);
        return now === undefined ? [] : [{ name, isFolder: now.isDirectory(), now }];
      });
      // Sorted again: what an entry is can have changed since its name was read.
      const entries = found.sort(inOrder).map(({ name, now }) => entryOf(name, now));
      return { entries, truncated: more };
    }),
  );
