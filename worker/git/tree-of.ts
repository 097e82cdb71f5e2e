/**
 * Purpose: the folder and the branch of a worktree: made of ids, never chosen by a caller.
 * Rights: none.
 * Called by: the handlers of the repo routes.
 * Fails: never.
 */

/** Where a worktree is, relative to the home, and its branch. */
export interface TreeOf {
  readonly folder: string;
  readonly branch: string;
}

/** A conversation's. */
export const conversationTree = (conversation: string, project: string): TreeOf => ({
  folder: `work/${conversation}/${project}`,
  branch: `chat/${conversation}`,
});

/** An agent's. */
export const agentTree = (id: string, project: string): TreeOf => ({
  folder: `work/agent-${id}/${project}`,
  branch: `agent-id/${id}`,
});
