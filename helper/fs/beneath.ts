/**
 * Purpose: the one path walker. Goes down from a held directory a segment at a time, each segment held before it is
 * looked at, links in the middle resolved by hand; the way os.Root of Go does it.
 * Rights: the user's.
 * Called by: the verbs, with paths of the caller's.
 * Fails: `outside_workspace`, `not_found`, `bad_target`, `workspace_broken`; or with the error of the system call.
 *
 * The kernel is never given more than one name, so it never follows a link or ".." by itself, and nothing that a
 * user swaps meanwhile leads a step out of the folder that is held. The last segment is left to the verb.
 */
import { closeSync, fstatSync, readlinkSync } from 'node:fs';
import { at, bytesOf, type Held, hold } from './descriptor.ts';
import { errnoOf, FsRefusal, ofPath } from './refusal.ts';

/** Links followed in one walk (MAXSYMLINKS, path_resolution(7)). */
const linksMax = 40;
/** Segments walked in one walk: links full of ".." would make it long. */
const stepsMax = 20_000;

/** Where a path leads: a name in a held folder, or with no name the home itself. */
export interface Place {
  /** The folder that holds it, while the verb runs; the home where there is no name. */
  readonly folder: number;
  readonly name: string | undefined;
  /** The whole way from the home, without links, as byte strings. */
  readonly names: readonly string[];
}

/** Reads a link beneath a held folder; undefined when it is no link any more. What it says is only ever walked by hand. */
const targetOf = (folder: number, name: string): string | undefined => {
  try {
    return readlinkSync(at(folder, name), 'buffer').toString('latin1');
  } catch (error) {
    if (errnoOf(error) === 'EINVAL') return undefined;
    throw error;
  }
};

/** A walk under way; holds one folder beside the home. */
class Walk {
  readonly #home: number;
  readonly #pending: string[];
  #names: string[] = [];
  #folder: number;
  #links = 0;

  constructor(home: number, segments: readonly string[]) {
    this.#home = home;
    this.#folder = home;
    this.#pending = segments.toReversed();
  }

  get folder(): number {
    return this.#folder;
  }

  get names(): readonly string[] {
    return this.#names;
  }

  /** Walks to the end. */
  run(): void {
    for (let steps = 0; this.#pending.length > 0; steps += 1) {
      if (steps === stepsMax) throw new FsRefusal('bad_target');
      const segment = this.#pending.pop() ?? '';
      if (segment === '' || segment === '.') continue;
      if (segment === '..') this.#up();
      else this.#down(segment);
    }
  }

  close(): void {
    if (this.#folder !== this.#home) closeSync(this.#folder);
    this.#folder = this.#home;
  }

  /** Walks to the parent again from home: the kernel's ".." leads to wherever the folder has been moved by now. */
  #up(): void {
    if (this.#names.length === 0) throw new FsRefusal('outside_workspace');
    this.#pending.push(...this.#names.slice(0, -1).toReversed());
    this.#names = [];
    this.close();
  }

  #down(name: string): void {
    const found = ofPath(() => hold(this.#folder, name));
    if (found.stat.isDirectory()) this.#enter(name, found);
    else {
      closeSync(found.descriptor);
      if (!found.stat.isSymbolicLink()) throw new FsRefusal('bad_target');
      this.#follow(name);
    }
  }

  #enter(name: string, { descriptor }: Held): void {
    this.close();
    this.#folder = descriptor;
    this.#names.push(name);
  }

  #follow(name: string): void {
    this.#links += 1;
    if (this.#links > linksMax) throw new FsRefusal('bad_target');
    // No link any more by now: looked at again.
    const target = ofPath(() => targetOf(this.#folder, name)) ?? name;
    if (target.startsWith('/')) throw new FsRefusal('outside_workspace');
    this.#pending.push(...target.split('/').toReversed());
  }
}

/**
 * Takes single names, byte strings and none of them "..", to the last one, which is not looked at.
 * @throws FsRefusal
 */
export const beneathNames = <T>(home: number, segments: readonly string[], act: (place: Place) => T): T => {
  const name = segments.at(-1);
  const walk = new Walk(home, segments.slice(0, -1));
  try {
    walk.run();
    const { folder, names } = walk;
    return act({ folder, name, names: name === undefined ? names : [...names, name] });
  } finally {
    walk.close();
  }
};

/**
 * The same for a caller's path.
 * @throws FsRefusal
 */
export const beneath = <T>(home: number, path: string, act: (place: Place) => T): T => {
  if (path.startsWith('/') || path.includes('\0')) throw new FsRefusal('outside_workspace');
  const segments = bytesOf(path)
    .split('/')
    .filter((segment) => segment !== '' && segment !== '.');
  if (segments.includes('..')) throw new FsRefusal('outside_workspace');
  return beneathNames(home, segments, act);
};

/**
 * Hands over what is at a place, itself: a link is not followed, a pipe or device not opened.
 * @throws FsRefusal `not_found`
 */
export const atPlace = <T>({ folder, name }: Place, act: (found: Held) => T): T => {
  if (name === undefined) return act({ descriptor: folder, stat: fstatSync(folder) });
  const found = ofPath(() => hold(folder, name));
  try {
    return act(found);
  } finally {
    closeSync(found.descriptor);
  }
};

/**
 * Holds the home beneath the held space, anew for each operation: after a reset it is another folder.
 * @throws FsRefusal `workspace_broken` when it is missing, a link, or anything else than a folder
 */
export const withHome = <T>(space: number, act: (home: number) => T): T => {
  let home: Held;
  try {
    home = hold(space, 'home');
  } catch (error) {
    throw errnoOf(error) === 'ENOENT' ? new FsRefusal('workspace_broken') : error;
  }
  try {
    if (!home.stat.isDirectory()) throw new FsRefusal('workspace_broken');
    return act(home.descriptor);
  } finally {
    closeSync(home.descriptor);
  }
};
