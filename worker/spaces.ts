/**
 * Purpose: makes each user's space on first use, and checks it on every later one.
 * Rights: root with CAP_CHOWN, without CAP_DAC_OVERRIDE and CAP_FOWNER: what was given to a user can be
 * neither entered nor changed any more, only looked at from outside.
 * Called by: handlers of operations that need a space.
 * Fails: `workspace_broken` for a space that isn't as made here; nothing is ever repaired. Everything else throws.
 */
import { randomBytes } from 'node:crypto';
import { chownSync, lstatSync, mkdirSync, readdirSync, renameSync, rmdirSync, type Stats } from 'node:fs';
import { join } from 'node:path';
import { Refusal } from '../protocol/errors.ts';
import { userUidFirst } from '../protocol/limits.ts';

/** Folders of a new space, outer ones first. */
const folders = ['', 'tmp', 'home', 'home/repos', 'home/work'] as const;

/** How the name of a space in the making begins. */
const temporaryPrefix = '.new-';

/** uid and gid of a user. */
export const uidOf = (user: number): number => userUidFirst + user;

const statOrUndefined = (path: string): Stats | undefined => lstatSync(path, { throwIfNoEntry: false });

/** The spaces beneath one work dir. */
export class Spaces {
  readonly #workDir: string;

  constructor(workDir: string) {
    this.#workDir = workDir;
  }

  /** The absolute path of a user's space, whether it exists or not. */
  pathOf(user: number): string {
    return join(this.#workDir, `u${uidOf(user)}`);
  }

  /**
   * Returns the path of the user's space, making it if there is none.
   * @throws Refusal `workspace_broken` when something else is there: a sign that isolation failed, for a person to look at
   */
  ensure(user: number): string {
    const there = this.find(user);
    if (there !== undefined) return there;
    const path = this.pathOf(user);
    this.#make(user, path);
    return path;
  }

  /**
   * Returns the path of the user's space if there is one, and makes none.
   * @throws Refusal `workspace_broken`, as `ensure`
   */
  find(user: number): string | undefined {
    const path = this.pathOf(user);
    const found = statOrUndefined(path);
    if (found === undefined) return undefined;
    const uid = uidOf(user);
    const intact = found.isDirectory() && (found.mode & 0o7777) === 0o700 && found.uid === uid && found.gid === uid;
    if (!intact) throw new Refusal('workspace_broken');
    return path;
  }

  /** Removes what a crash in the middle of making a space left. Returns how many could not be removed. */
  removeLeftovers(): number {
    const names = readdirSync(this.#workDir).filter((name) => name.startsWith(temporaryPrefix));
    return names.filter((name) => !this.#unmake(join(this.#workDir, name))).length;
  }

  /**
   * All modes are set before any owner (chmod after chown is EPERM without CAP_FOWNER), owners from the
   * inside out (a 0700 folder that was given away can't be entered without CAP_DAC_OVERRIDE). The name
   * appears only when all is done, so a crash leaves no half-made space.
   */
  #make(user: number, path: string): void {
    const uid = uidOf(user);
    const temporary = join(this.#workDir, `${temporaryPrefix}u${uid}-${randomBytes(8).toString('hex')}`);
    try {
      for (const folder of folders) mkdirSync(join(temporary, folder), { mode: 0o700 });
      for (const folder of folders.toReversed()) chownSync(join(temporary, folder), uid, uid);
      // rename(2) would silently replace an empty folder. Only this process makes names here, and not while
      // it is between these two calls, so the look is enough.
      if (statOrUndefined(path) !== undefined) throw new Refusal('workspace_broken');
      renameSync(temporary, path);
    } catch (error) {
      this.#unmake(temporary);
      throw error;
    }
  }

  /**
   * Takes a half-made space back from the outside in, then removes exactly the folders that it can have.
   * Never recursive: nothing but those folders can be in there, and if something is, a person should look.
   */
  #unmake(temporary: string): boolean {
    const present = folders.map((folder) => join(temporary, folder));
    try {
      for (const folder of present) {
        const found = statOrUndefined(folder);
        if (found === undefined) continue;
        // A link would lead to folders elsewhere.
        if (!found.isDirectory()) return false;
        chownSync(folder, 0, 0);
      }
      for (const folder of present.toReversed()) if (statOrUndefined(folder)) rmdirSync(folder);
      return true;
    } catch {
      return false;
    }
  }
}
