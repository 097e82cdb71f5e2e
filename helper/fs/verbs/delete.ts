/**
 * Purpose: removes a file, a link (itself only) or a folder with all that is in it.
 * Rights: the user's.
 * Called by: main.ts.
 * Fails: `bad_target`, `not_found`, what the walk refuses; `file_failed`, and then a folder that is gone from the home
 * may still be in the trash, for the next use to remove.
 */
import { unlinkSync } from 'node:fs';
import type { FsCalls, FsResults } from '../../contract/fs.ts';
import { atPlace, beneath } from '../beneath.ts';
import { at } from '../descriptor.ts';
import { FsRefusal, ofPath } from '../refusal.ts';
import { takeRegistrations } from '../registrations.ts';
import { isManaged } from '../space.ts';
import { withTrash } from '../trash.ts';

/** Deletes what is at a path. */
export const remove = (space: number, home: number, { path }: FsCalls['delete']): FsResults['delete'] =>
  beneath(home, path, (place) => {
    const { folder, name, names } = place;
    if (name === undefined || isManaged(names)) throw new FsRefusal('bad_target');
    const isFolder = atPlace(place, ({ stat }) => stat.isDirectory());
    if (!isFolder) ofPath(() => unlinkSync(at(folder, name)));
    else {
      withTrash(space, (trash) => {
        const own = ofPath(() => trash.take(folder, name));
        takeRegistrations(trash, home, names, own);
      });
    }
    return {};
  });
