/**
 * Purpose: what a workflow may talk to, push, and be told by its environment.
 * Rights: root; resolves the paths of two variables of the request's, and reads nothing.
 * Called by: the handlers of the repo routes.
 * Fails: with `host_not_allowed`, `protected_branch`, `wrong_branch`, `bad_env`.
 */
import { realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { Refusal } from '../../protocol/errors.ts';
import { pathVariables } from '../../protocol/operations/repo-fields.ts';
import { parseRepositoryUrl, type RepositoryUrl } from '../../protocol/repository-url.ts';
import type { WorkerConfig } from '../config.ts';

/** A URL that may be asked, or pushed to. @throws Refusal `host_not_allowed` */
export const permittedUrl = (url: string, { allowedGitHosts }: WorkerConfig): RepositoryUrl => {
  const parsed = parseRepositoryUrl(url);
  const permitted = parsed?.scheme === 'https' && allowedGitHosts.includes(parsed.host);
  if (parsed === undefined || !permitted) throw new Refusal('host_not_allowed');
  return parsed;
};

const isProtected = (branch: string, patterns: readonly string[]): boolean =>
  patterns.some((pattern) => (pattern.endsWith('/*') ? branch.startsWith(pattern.slice(0, -1)) : branch === pattern));

/**
 * That a worktree is on exactly the branch that it was made with.
 * @param ref the full name that git gave; undefined when detached
 * @throws Refusal `protected_branch`, `wrong_branch`
 */
export const checkBranch = (ref: string | undefined, branch: string, { protectedBranches }: WorkerConfig): void => {
  const [, current] = /^refs\/heads\/(.*)$/s.exec(ref ?? '') ?? [];
  if (current !== undefined && isProtected(current, protectedBranches)) throw new Refusal('protected_branch');
  if (current !== branch) throw new Refusal('wrong_branch');
};

/** Where a path really leads; undefined where nothing is. What root can't resolve is somebody's private folder. */
const resolved = (path: string): string | undefined => {
  try {
    return realpathSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new Refusal('bad_env');
  }
};

/** Whether a path leads each process elsewhere: to its own folder, or to what it has open. */
const dependsOnReader = (path: string): boolean => /^\/(proc|dev)(\/|$)/.test(path);

/**
 * That no variable leads to something of a user's: a program there would run with the token, or be trusted.
 * @throws Refusal `bad_env`
 */
export const checkEnvironment = (entries: readonly string[], { workDir }: WorkerConfig): void => {
  const folders = [resolve(workDir), realpathSync(workDir)];
  const isWithin = (path: string): boolean => folders.some((folder) => `${path}/`.startsWith(`${folder}/`));
  for (const entry of entries) {
    const equals = entry.indexOf('=');
    const [key, value] = [entry.slice(0, equals), entry.slice(equals + 1)];
    // More than one way to write a path: "//work/./u1"; and some variables hold several.
    const paths = value.split(':').filter((path) => path.startsWith('/'));
    const isFollowed = pathVariables.includes(key);
    const target = isFollowed ? resolved(value) : undefined;
    const leadsIn = paths.some((path) => isWithin(resolve(path))) || (target !== undefined && isWithin(target));
    if (leadsIn || (isFollowed && dependsOnReader(resolve(value)))) throw new Refusal('bad_env');
  }
};
