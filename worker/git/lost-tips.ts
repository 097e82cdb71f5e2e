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

const lostOf = (lines: readonly RefLine[], branch: string): readonly RefLine[] =>
  lines.filter(({ name }) => name.startsWith(`refs/lost/${branch}/`));

/** The ref that the next lost tip of a branch is kept by: one more than the highest number. */
export const nextLostRef = (branches: string, branch: string): string => {
  const prefix = `refs/lost/${branch}/`;
  const numbers = lostOf(linesOf(branches), branch).flatMap(({ name }) => {
    const number = name.slice(prefix.length);
    return /^[1-9]\d{0,8}$/.test(number) ? [Number(number)] : [];
  });
  return `${prefix}${Math.max(0, ...numbers) + 1}`;
};

/**
 * The tip that a branch loses when it is set to a commit.
 * @returns undefined when there is none, it is that commit, or it is kept already; a branch that is checked out in a
 * worktree loses nothing, since git refuses to set it
 */
export const lostTip = (branches: string, branch: string, commit: string): string | undefined => {
  const lines = linesOf(branches);
  const held = lines.find(({ name, worktree }) => name === `refs/heads/${branch}` && worktree === '');
  if (held === undefined || held.tip === commit) return undefined;
  return lostOf(lines, branch).some(({ tip }) => tip === held.tip) ? undefined : held.tip;
};
