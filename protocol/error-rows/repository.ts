import type { ErrorRow } from './row.ts';

/** 4xx of the routes that bring repositories in and out. */
export const repositoryRows = {
  bad_url: {
    status: 400,
    retry: 'change',
    effect: 'none',
    blame: 'caller',
    text: 'The URL must be https://host/group/project.git, without user, query, fragment, "..", white space or escapes.',
  },
  bad_name: {
    status: 400,
    retry: 'change',
    effect: 'none',
    blame: 'caller',
    text: 'A project, a conversation, an id or a branch has a name that cannot be one.',
  },
  bad_env: {
    status: 400,
    retry: 'change',
    effect: 'none',
    blame: 'caller',
    text: 'The environment has a variable that could change what git does or whom it asks, or a path into the work dir.',
  },
  host_not_allowed: {
    status: 403,
    retry: 'change',
    effect: 'none',
    blame: 'caller',
    text: 'The repository is not at an allowed host, or the clone’s own URL no longer leads to that project.',
  },
  protected_branch: {
    status: 403,
    retry: 'change',
    effect: 'none',
    blame: 'tenant',
    text: 'The worktree is on a protected branch; nothing was pushed.',
  },
  wrong_branch: {
    status: 403,
    retry: 'change',
    effect: 'none',
    blame: 'tenant',
    text: 'The worktree is not on the branch that it was made with; nothing was pushed.',
  },
  no_project: {
    status: 404,
    retry: 'change',
    effect: 'none',
    blame: 'caller',
    text: 'There is no clone of this project.',
  },
  no_worktree: {
    status: 404,
    retry: 'change',
    effect: 'none',
    blame: 'caller',
    text: 'There is no worktree of this project here.',
  },
  exists: {
    status: 409,
    retry: 'change',
    effect: 'none',
    blame: 'caller',
    text: 'There is something in this place already.',
  },
} as const satisfies Record<string, ErrorRow>;
