import { cpSync, lchownSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Work } from './git-scene.ts';
import { uidOf } from './user.ts';

/** A clone and its worktree, and the home that they are in. */
export interface WorkPlace {
  readonly home: string;
  readonly work: Work;
}

/**
 * Gives a user such a clone as another one has, with its worktree or without, under names of their own: as plain git
 * makes it, without its many processes. Their remotes must have the same commit.
 */
export const copyWork = (from: WorkPlace, to: WorkPlace, what: 'clone' | 'clone and worktree'): void => {
  const [theirs, own] = [from.work, to.work];
  const renamed = (text: string): string =>
    text
      .replaceAll(from.home, to.home)
      .replaceAll(theirs.conversation, own.conversation)
      .replaceAll(theirs.project, own.project)
      .replaceAll(theirs.project.replace('__', '/'), own.project.replace('__', '/'));
  const all = { recursive: true, preserveTimestamps: true };
  const [clone, git] = [join(to.home, 'repos', own.project), join(to.home, 'repos', own.project, '.git')];
  cpSync(join(from.home, 'repos', theirs.project), clone, all);
  const made = [clone];
  const naming = [join(git, 'config')];
  const branches = join(git, 'refs/heads/chat');
  if (what === 'clone') {
    for (const folder of [join(git, 'worktrees'), branches]) rmSync(folder, { recursive: true });
  } else {
    const folder = join(to.home, 'work', own.conversation);
    cpSync(join(from.home, 'work', theirs.conversation), folder, all);
    renameSync(join(folder, theirs.project), join(folder, own.project));
    const registration = join(git, 'worktrees', own.project);
    renameSync(join(git, 'worktrees', theirs.project), registration);
    renameSync(join(branches, theirs.conversation), join(branches, own.conversation));
    made.push(folder);
    naming.push(join(registration, 'HEAD'), join(registration, 'gitdir'), join(folder, own.project, '.git'));
  }
  for (const file of naming) writeFileSync(file, renamed(readFileSync(file, 'utf8')));
  for (const top of made) {
    for (const path of [top, ...readdirSync(top, { recursive: true, encoding: 'utf8' }).map((name) => join(top, name))])
      lchownSync(path, uidOf(own.user), uidOf(own.user));
  }
};
