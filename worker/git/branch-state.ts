/**
 * Purpose: where a worktree's branch stands, as git lists it, and what becomes of the tip of one whose worktree is gone: it is
 * kept under `refs/lost`, so that nothing is lost.
 * Rights: none. Reads what git-for-each-ref(1) says of the user's repository: the user's word.
 * Called by: repo-worktree.ts.
 * Fails: never; a line that is not understood is passed over, and git then refuses what can't be.
 */

/** One ref: its full name, its commit, the path of the worktree that has it checked out, and what it is another name of. */
interface RefLine {
  readonly name: string;
  readonly tip: string;
  readonly worktree: string;
  readonly target: string;
}

const linesOf = (text: string): RefLine[] =>
  text.split('\n').flatMap((line) => {
    const [name = '', tip, worktree, target] = line.split('\0');
    return tip !== undefined && worktree !== undefined && target !== undefined ? [{ name, tip, worktree, target }] : [];
  });

const branchOf = (lines: readonly RefLine[], branch: string): RefLine | undefined =>
  lines.find(({ name }) => name === `refs/heads/${branch}`);

/** Whether a branch is only another name of something: to set it would set that. */
export const isOtherName = (branches: string, branch: string): boolean =>
  (branchOf(linesOf(branches), branch)?.target ?? '') !== '';

/** Whether a branch is at a commit, and checked out in the worktree whose path ends so. */
export const isAt = (branches: string, branch: string, commit: string, place: string): boolean => {
  const found = branchOf(linesOf(branches), branch);
  return found?.tip === commit && found.target === '' && found.worktree.endsWith(place);
};

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
  const held = branchOf(lines, branch);
  if (held === undefined || held.worktree !== '' || held.tip === commit) return undefined;
  return lostOf(lines, branch).some(({ tip }) => tip === held.tip) ? undefined : held.tip;
};
