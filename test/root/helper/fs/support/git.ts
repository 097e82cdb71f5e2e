import type { UserSpace } from './user-space.ts';

/** A conversation's folder of worktrees, as the service names it. */
export const conversation = 'work/5f0c7c3e-0000-4000-8000-000000000001';

/** Runs a shell script as the user with a git that has nobody's configuration; `$SCRATCH` is the scratch folder. */
export const git = (user: UserSpace, script: string): string =>
  user.sh(`
    export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_TERMINAL_PROMPT=0
    export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
    SCRATCH="$SPACE/tmp/.git-workflow"
    ${script}`);

/** Makes repositories with one commit under `repos`. */
export const makeProjects = (user: UserSpace, ...projects: readonly string[]): void => {
  for (const name of projects) {
    git(user, `git init -q -b main repos/${name}; git -C repos/${name} commit -q --allow-empty -m x`);
  }
};

/** Makes a worktree of a project beneath the home. */
export const addWorktree = (user: UserSpace, project: string, path: string, branch: string): void =>
  void git(user, `git -C repos/${project} worktree add -q "$HOME/${path}" -b ${branch}`);
