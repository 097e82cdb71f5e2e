/**
 * Purpose: the arguments of every git command that the service runs by itself. Nobody else has a say in them.
 * Rights: none of its own.
 * Called by: the handlers of the repo routes.
 * Fails: never. What goes into them has passed a schema or was read from git: no name begins with a hyphen, every ref is
 * a full one.
 */
import { join } from 'node:path';
import { scratchFolder, scratchNames } from '../../helper/contract/fs.ts';

/** One git command: where it starts, beneath the home, and what it is given. */
export interface GitCommand {
  readonly directory: string;
  readonly args: readonly string[];
  /** True where the configuration of the user's repository may make it run programs of theirs. */
  readonly runsPrograms: boolean;
}

/** The commands for one user's space. */
export class GitCommands {
  readonly #scratch: string;

  /** @param space absolute path of the user's space */
  constructor(space: string) {
    this.#scratch = join(space, scratchFolder);
  }

  /** Clones into the scratch folder; nothing is checked out where a token is. */
  clone(url: string): GitCommand {
    return this.#inScratch('', [
      'clone',
      '--quiet',
      '--depth=1',
      '--single-branch',
      '--no-tags',
      '--no-recurse-submodules',
      '--no-checkout',
      '--template=',
      '--origin=origin',
      url,
      scratchNames.tree,
    ]);
  }

  /** The commit of the new clone; fails where there is none yet. */
  headOfClone(): GitCommand {
    return this.#inScratch(scratchNames.tree, ['rev-parse', '--quiet', '--verify', 'HEAD^{commit}']);
  }

  /** Writes the new clone's files. */
  checkOut(): GitCommand {
    return this.#inScratch(scratchNames.tree, ['read-tree', '--reset', '-u', '--no-recurse-submodules', 'HEAD']);
  }

  /** What a clone's own file says of its remote and its format: no other file, and nothing that it includes. */
  configurationOf(project: string): GitCommand {
    const wanted = '^(remote\\.origin\\.url|extensions\\.objectformat)$';
    return this.#inClone(project, ['config', '--file=.git/config', '--no-includes', '--null', '--get-regexp', wanted]);
  }

  /** The newest commit of a base branch, into the clean repository. */
  fetch(url: string, baseBranch: string): GitCommand {
    return this.#inClean(['fetch', '--depth=1', ...fetchOptions, url, `+refs/heads/${baseBranch}:${fetchedRef}`]);
  }

  /** What was fetched into the clean repository. */
  fetchedCommit(): GitCommand {
    return this.#inClean(['rev-parse', '--quiet', '--verify', `${fetchedRef}^{commit}`]);
  }

  /** Whether a clone has a commit. */
  hasCommit(project: string, commit: string): GitCommand {
    return this.#inClone(project, ['rev-parse', '--quiet', '--verify', `${commit}^{commit}`]);
  }

  /**
   * Takes what was fetched over into the clone, by plain path. With a depth it would cut the history that the clone has;
   * without either, git ends with status 0 and takes nothing.
   */
  takeOver(project: string): GitCommand {
    const args = ['fetch', '--update-shallow', ...fetchOptions, join(this.#scratch, scratchNames.clean), fetchedRef];
    return { ...this.#inClone(project, args), runsPrograms: true };
  }

  /** Lets the clone know the newest commit of a base branch. */
  track(project: string, baseBranch: string, commit: string): GitCommand {
    return this.#inClone(project, ['update-ref', trackingRef(baseBranch), commit]);
  }

  /** Forgets worktrees whose folders are gone for long: one that was moved away for a while may come back. */
  prune(project: string): GitCommand {
    return this.#inClone(project, ['worktree', 'prune', '--expire=1.day.ago']);
  }

  /** The branch with its tip, who has it checked out, and what it is another name of; and its lost tips. */
  branches(project: string, branch: string): GitCommand {
    const format = '--format=%(refname)%00%(objectname)%00%(worktreepath)%00%(symref)';
    return this.#inClone(project, ['for-each-ref', format, `refs/heads/${branch}`, `refs/lost/${branch}`]);
  }

  /** Removes a name of another branch, and leaves that one alone. */
  removeOtherName(project: string, branch: string): GitCommand {
    return this.#inClone(project, ['symbolic-ref', '--delete', `refs/heads/${branch}`]);
  }

  /** Keeps a tip under a name that must be new. */
  keepTip(project: string, ref: string, tip: string): GitCommand {
    return this.#inClone(project, ['update-ref', ref, tip, '']);
  }

  /** Makes a worktree in the scratch folder, on a branch that begins at a commit. */
  addWorktree(project: string, branch: string, commit: string): GitCommand {
    const tree = join(this.#scratch, scratchNames.tree);
    const args = ['worktree', 'add', '--quiet', '--no-track', '-B', branch, tree, commit];
    return { ...this.#inClone(project, args), runsPrograms: true };
  }

  /** The full name of what a worktree is on; fails for a detached one. */
  currentBranch(worktree: string): GitCommand {
    return plain(worktree, ['symbolic-ref', '--quiet', 'HEAD']);
  }

  /** The commit of a branch. */
  tipOf(worktree: string, branch: string): GitCommand {
    return plain(worktree, ['rev-parse', '--quiet', '--verify', `refs/heads/${branch}^{commit}`]);
  }

  /** Takes a commit, and all that it needs, from what is borrowed into the clean repository: every object under its true name. */
  gather(commit: string): GitCommand {
    const borrowed = join(this.#scratch, scratchNames.borrowed);
    return this.#inClean(['fetch', '--update-shallow', ...fetchOptions, borrowed, `${commit}:${fetchedRef}`]);
  }

  /** Pushes one commit to one ref: no force, no tags, no options, nothing deleted. */
  push(url: string, commit: string, branch: string): GitCommand {
    return this.#inClean([
      'push',
      '--porcelain',
      '--no-verify',
      '--no-follow-tags',
      '--recurse-submodules=no',
      url,
      `${commit}:refs/heads/${branch}`,
    ]);
  }

  #inScratch(folder: string, args: readonly string[]): GitCommand {
    return plain('', ['-C', join(this.#scratch, folder), ...args]);
  }

  #inClean(args: readonly string[]): GitCommand {
    return this.#inScratch('', [`--git-dir=${scratchNames.clean}`, ...args]);
  }

  /** The folder was seen to be a clone: its `.git` is its own. */
  #inClone(project: string, args: readonly string[]): GitCommand {
    return plain(`repos/${project}`, ['--git-dir=.git', ...args]);
  }
}

const plain = (directory: string, args: readonly string[]): GitCommand => ({ directory, args, runsPrograms: false });

/** One ref and nothing else, and nothing that goes on afterwards. */
const fetchOptions = [
  '--quiet',
  '--no-tags',
  '--no-prune',
  '--no-recurse-submodules',
  '--no-auto-maintenance',
  '--no-write-fetch-head',
] as const;

/** Where the clean repository has what was fetched. */
const fetchedRef = 'refs/heads/base';

/** Where a clone has the newest commit of a base branch that is known. */
export const trackingRef = (baseBranch: string): string => `refs/remotes/origin/${baseBranch}`;
