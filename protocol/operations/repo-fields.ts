import { z } from 'zod';
import { environmentEntriesMax, pathLengthMax, usageTimeoutMs } from '../limits.ts';
import type { Operation, TimeLimits } from '../operation.ts';
import { parseRepositoryUrl } from '../repository-url.ts';
import { answeredWith, environmentEntry, text } from '../values.ts';

/** The URL of a repository, without anything secret in it. */
export const repositoryUrl = text.refine(
  (value) => parseRepositoryUrl(value) !== undefined,
  answeredWith(
    'bad_url',
    'must be https://host/group/project.git, without user, query, fragment, "..", white space or escapes',
  ),
);

/** The folder of a clone beneath `repos`. */
export const project = text.refine(
  (value) => /^[A-Za-z0-9_][A-Za-z0-9._-]{0,254}$/.test(value) && !value.includes('..'),
  answeredWith('bad_name', 'must be the name of a clone'),
);

/** A conversation's or an agent's id: part of a folder's and of a branch's name. */
export const lowerCaseUuid = text.refine(
  (value) => /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/.test(value),
  answeredWith('bad_name', 'must be a UUID in lower case'),
);

const branchLengthMax = 244;
/** What no ref may hold: control characters, space, the signs of revisions and globs, "..", "@{", empty parts. */
const notInRefs = /[\u0000-\u0020\u007f~^:?*[\\]|\.\.|@\{|\/\/|^[-/]|[/.]$/;

/** Whether `git check-ref-format --branch` would take it for a branch's name (git-check-ref-format(1)). */
const isBranchName = (value: string): boolean =>
  value !== '' &&
  value !== '@' &&
  value !== 'HEAD' &&
  Buffer.byteLength(value) <= branchLengthMax &&
  !notInRefs.test(value) &&
  value.split('/').every((name) => !name.startsWith('.') && !name.endsWith('.lock'));

/** The name of a branch. */
export const branchName = text.refine(isBranchName, answeredWith('bad_name', 'must be the name of a branch'));

/** What has its effect, and what is accepted since the server sets it anyway. */
const allowedGitVariables =
  /^GIT_(ASKPASS|SSL_CAINFO|(AUTHOR|COMMITTER)_[A-Z]+|TERMINAL_PROMPT|LFS_SKIP_SMUDGE|HTTP_LOW_SPEED_[A-Z]+)$/;

/**
 * What could change what git does, whom it asks, or which programs run where the token is: git's own variables, the
 * dynamic linker's and the C library's, curl's and the TLS libraries', other askpass programs, and what a shell or an
 * interpreter that is the askpass program reads at its start.
 */
const dangerousVariables = new RegExp(
  `^(${[
    ['GIT_.*', 'PATH', 'HOME', 'XDG_.*', '.*_proxy', 'SSH_.*'],
    ['LD_.*', 'GCONV_PATH', 'LOCPATH', 'HOSTALIASES', 'LOCALDOMAIN', 'RES_OPTIONS'],
    ['CURL_.*', 'SSL.*', 'OPENSSL_.*', 'GNUTLS_.*'],
    ['ENV', 'BASH_.*', 'SHELLOPTS', 'NODE_.*', 'PYTHON.*', 'PERL.*', 'RUBY.*'],
  ]
    .flat()
    .join('|')})$`,
  'i',
);

/** Variables with an absolute path: of a program that runs where the token is, and of a file that is trusted. */
export const pathVariables: readonly string[] = ['GIT_ASKPASS', 'GIT_SSL_CAINFO'];

const isHarmless = (entry: string): boolean => {
  const equals = entry.indexOf('=');
  const [key, value] = [entry.slice(0, equals), entry.slice(equals + 1)];
  if (pathVariables.includes(key)) return value.startsWith('/') && !value.split('/').includes('..');
  return allowedGitVariables.test(key) || !dangerousVariables.test(key);
};

/** The environment of what git does on the network, and of nothing else. */
export const repositoryEnvironment = z
  .array(environmentEntry.refine(isHarmless, answeredWith('bad_env', 'could change what git does or whom it asks')))
  .max(environmentEntriesMax);

/** What every one of these routes answers: how the last git command of it ended. */
export const gitResult = {
  /** True only when all of it was seen to be done. */
  ok: z.boolean(),
  exitCode: z.int().min(-1).max(255),
  truncated: z.boolean(),
  timedOut: z.boolean(),
  durationMs: z.int().min(0),
} as const;

/** Relative to the home. */
export const folder = z.string().min(1).max(pathLengthMax);

/** A commit's id: SHA-1 or SHA-256. */
export const commit = z.string().regex(/^([0-9a-f]{40}|[0-9a-f]{64})$/);

/** What can stand in the way of each of these routes. */
export const gitErrors = [
  'bad_env',
  'host_not_allowed',
  'workspace_broken',
  'busy',
  'outside_workspace',
  'bad_target',
  'file_failed',
  'exec_failed',
  'limit_failed',
  'kill_incomplete',
  'uncertain',
  'worker_unavailable',
] as const satisfies Operation['errors'];

/** What all of these routes have in common. */
export const gitRow = { effect: 'mutate', streams: ['stdout', 'stderr'], startsRun: true } as const;

/** What the routes that make a worktree have in common; `commit` is null when it was not made. */
export const worktreeRow = {
  ...gitRow,
  result: z.strictObject({
    ...gitResult,
    folder,
    branch: branchName,
    commit: commit.nullable(),
    workspaceId: z.string().max(pathLengthMax),
  }),
  asRoot: 'checks the clone’s URL and its host; the spawner forks, sets the limits and drops',
  asUser: 'git, on the network in a clean repository only; the fs helper moves the worktree to its place',
  errors: [...gitErrors, 'disk_quota', 'usage_failed', 'no_project', 'exists'],
  // What the space holds may have to be counted first, and what is left cleared away.
  timeLimitMs: (limits: TimeLimits) => usageTimeoutMs + limits.execMs + limits.fileMs,
} as const satisfies Partial<Operation>;

/** What the routes that push have in common: the branch, and the commit that it was to get; null when it has none. */
export const pushRow = {
  ...gitRow,
  result: z.strictObject({ ...gitResult, branch: branchName, commit: commit.nullable() }),
  asRoot: 'checks the branch, the clone’s URL and its host; the spawner forks, sets the limits and drops',
  asUser: 'git, on the network in a clean repository only, into which it fetched the commit',
  errors: [...gitErrors, 'no_worktree', 'protected_branch', 'wrong_branch'],
  // What is left may have to be cleared away.
  timeLimitMs: (limits: TimeLimits) => limits.execMs + limits.fileMs,
} as const satisfies Partial<Operation>;
