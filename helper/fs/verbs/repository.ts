/**
 * Purpose: what is at the places of a clone and of a worktree.
 * Rights: the user's.
 * Called by: main.ts.
 * Fails: `file_failed`. What can't be looked at is `other`.
 *
 * A worktree is `linked` only if git, started in it, comes out at exactly the clone of its project: no link on the
 * way, and no file that names another repository.
 */
import { lstatSync } from 'node:fs';
import type { FsCalls, FsResults } from '../../contract/fs.ts';
import { atPlace, beneathNames } from '../beneath.ts';
import { at } from '../descriptor.ts';
import { ifThere, isOf, lookedAt, pathOf, same, withRegistration } from '../pointers.ts';

const projectAt = (home: number, project: string): FsResults['repository']['project'] =>
  beneathNames(home, ['repos', project], (place) =>
    atPlace(place, ({ descriptor, stat }) => {
      if (!stat.isDirectory()) return 'other';
      return lstatSync(at(descriptor, '.git'), { throwIfNoEntry: false })?.isDirectory() === true ? 'clone' : 'other';
    }),
  );

const worktreeAt = (home: number, project: string, names: readonly string[]) =>
  beneathNames(home, names, (place) =>
    atPlace(place, ({ descriptor, stat }) => {
      if (!stat.isDirectory() || !same(place.names, names)) return 'other';
      const path = `${pathOf(home)}/${names.join('/')}`;
      const linked = ifThere(() => withRegistration(home, path, descriptor, (found) => isOf(home, project, found)));
      return linked === true ? 'linked' : 'other';
    }),
  );

/** Looks at a project, and at a worktree of it. */
export const repository = (home: number, { project, worktree }: FsCalls['repository']): FsResults['repository'] => ({
  project: lookedAt(() => projectAt(home, project)),
  worktree: worktree === null ? null : lookedAt(() => worktreeAt(home, project, worktree.split('/'))),
});
