/**
 * Purpose: what becomes of the tip of a branch whose worktree is gone: kept under `refs/lost`, so that nothing is lost.
 * Rights: none. Reads what git-for-each-ref(1) says of the user's repository: the user's word.
 * Called by: repo-worktree.ts.
 * Fails: never; a line that is not understood is passed over, and git then refuses what can't be.
 */

/** One ref: its full name, its commit, and the path of the worktree that has it checked out. */
interface RefLine {
  readonly name: string;
  readonly tip: string;
  readonly worktree: string;
}

const linesOf = (text: string): RefLine[] =>
  text.split('\n').flatMap((line) => {
    const [name, tip, worktree] = line.split('\0');
    return name !== undefined && tip !== undefined && worktree !== undefined ? [{ name, tip, worktree }] : [];
  });

/** The tip of a branch that no worktree has checked out; undefined when there is none. */
export const heldTip = (branches: string, branch: string): string | undefined =>
  linesOf(branches).find(({ name, worktree }) => name === `refs/heads/${branch}` && worktree === '')?.tip;

/** The name of the next lost tip: one more than the highest number. */
export const freeLostRef = (branches: string, branch: string): string => {
  const prefix = `refs/lost/${branch}/`;
  const numbers = linesOf(branches).flatMap(({ name }) => {
    const number = name.startsWith(prefix) ? name.slice(prefix.length) : '';
    return /^[1-9]\d{0,8}$/.test(number) ? [Number(number)] : [];
  });
  return `${prefix}${Math.max(0, ...numbers) + 1}`;
};
