/**
 * Purpose: takes git's registrations of deleted worktrees away with them; left behind, they keep git from making the
 * same worktree again.
 * Rights: the user's.
 * Called by: the verb delete, with the folder in the trash already.
 * Fails: with the error of the system call. Whatever is no worktree, or not registered, is no failure.
 */
import { entriesOf, holding } from './descriptor.ts';
import { ifThere, pathOf, withRegistration } from './pointers.ts';
import { openUp, type Trash } from './trash.ts';

/** Takes the registration of one worktree, if there is one. */
const takeRegistration = (trash: Trash, home: number, names: readonly string[], folder: number): void => {
  const worktree = `${pathOf(home)}/${names.join('/')}`;
  ifThere(() => withRegistration(home, worktree, folder, (found) => trash.take(found.folder, found.name)));
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
