/**
 * Purpose: what is at the places of a clone and of a worktree.
 * Rights: the user's.
 * Called by: main.ts.
 * Fails: `file_failed`. What can't be looked at is `other`.
 *
 * A link anywhere on the way is `other`: nothing could be placed behind it. A worktree is `linked` only if git, started in
 * it, comes out at exactly the clone of its project: no link on the way, and no file that names another repository.
 */
import { lstatSync } from 'node:fs';
import type { FsCalls, FsResults } from '../../contract/fs.ts';
import { at, type Held, holding } from '../descriptor.ts';
import { within } from '../folders.ts';
import { ifThere, isOf, lookedAt, pathOf, withRegistration } from '../pointers.ts';
import { ofPath } from '../refusal.ts';

/** Hands over what is at the end of a way of real folders. @throws FsRefusal `not_found`, `bad_target` */
const found = <T>(home: number, names: readonly string[], act: (there: Held) => T): T =>
  ofPath(() => within(home, names.slice(0, -1), (folder) => holding(folder, names.at(-1) ?? '', act)));

/** Whether this is a clone's own `.git`: a folder, whose `commondir` would take git to another repository. */
const isOwn = ({ descriptor, stat }: Held): boolean =>
  stat.isDirectory() && lstatSync(at(descriptor, 'commondir'), { throwIfNoEntry: false }) === undefined;

const projectAt = (home: number, project: string): FsResults['repository']['project'] =>
  found(home, ['repos', project], ({ descriptor, stat }) => {
    if (!stat.isDirectory()) return 'other';
    return ifThere(() => holding(descriptor, '.git', isOwn)) === true ? 'clone' : 'other';
  });

const worktreeAt = (home: number, project: string, names: readonly string[]) =>
  found(home, names, ({ descriptor, stat }) => {
    if (!stat.isDirectory()) return 'other';
    const path = `${pathOf(home)}/${names.join('/')}`;
    const linked = ifThere(() => withRegistration(home, path, descriptor, (there) => isOf(home, project, there)));
    return linked === true ? 'linked' : 'other';
  });

/** Looks at a project, and at a worktree of it. */
export const repository = (home: number, { project, worktree }: FsCalls['repository']): FsResults['repository'] => ({
  project: lookedAt(() => projectAt(home, project)),
  worktree: worktree === null ? null : lookedAt(() => worktreeAt(home, project, worktree.split('/'))),
});
