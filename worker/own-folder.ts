/**
 * Purpose: makes a folder that the worker has for itself, or tightens the one that is there.
 * Rights: root; makes folders, and changes the mode and group of one that is root's already.
 * Called by: folders.ts and listen.ts, before anything is listened on.
 * Fails: a place that isn't safe to take stops the start and stays as it is.
 */
import { chmodSync, chownSync, existsSync, lstatSync, mkdirSync, readdirSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { SettingsError } from '../protocol/settings.ts';

/** What is wanted of a folder. */
export interface OwnFolder {
  /** How a sentence about it begins: `RUNNER_… must be`. */
  readonly subject: string;
  readonly path: string;
  readonly mode: number;
  readonly gid: number;
  /** Of folders above it that have to be made. */
  readonly modeAbove: number;
  /** True for what the service itself has in there. */
  readonly isOurs: (name: string) => boolean;
}

/** Others than this service live in these. They may be empty, so what they hold doesn't tell. */
const systemFolders: ReadonlySet<string> = new Set([
  ...['/', '/bin', '/boot', '/dev', '/dev/shm', '/etc', '/home', '/lib', '/proc', '/root', '/run', '/run/lock'],
  ...['/sbin', '/sys', '/tmp', '/usr', '/usr/local', '/var', '/var/cache', '/var/lib', '/var/lock', '/var/log'],
  ...['/var/run', '/var/spool', '/var/tmp'],
]);

/** S_ISVTX: only the owner of an entry may remove it, which is how places for everybody are marked. */
const stickyBit = 0o1000;

/**
 * The umask is put aside rather than a chmod added: that would follow a link that somebody put in the place of
 * the new folder.
 */
const make = (path: string, mode: number, modeAbove: number): void => {
  const above = dirname(path);
  if (!existsSync(above)) make(above, modeAbove, modeAbove);
  const before = process.umask(0);
  try {
    mkdirSync(path, { mode });
  } finally {
    process.umask(before);
  }
};

const makeIfMissing = ({ subject, path, mode, modeAbove }: OwnFolder): void => {
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) return;
  try {
    make(path, mode, modeAbove);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new SettingsError([`${subject} a folder that can be made; making it failed with ${code}.`]);
  }
};

/**
 * Makes the folder with these rights. One that exists is tightened only if it is root's and holds nothing but
 * ours: tightening /run or /tmp would break the machine.
 * @throws SettingsError
 */
export const prepareOwnFolder = (wanted: OwnFolder): void => {
  // Without a slash at its end: with one, what a link leads to would be looked at instead of the link.
  const path = resolve(wanted.path);
  const { subject, mode, gid, isOurs } = wanted;
  if (systemFolders.has(path)) throw new SettingsError([`${subject} a folder of its own, not one of the system’s.`]);
  makeIfMissing({ ...wanted, path });
  const found = lstatSync(path);
  if (!found.isDirectory()) throw new SettingsError([`${subject} a folder, not a file and not behind a link.`]);
  if (found.uid !== 0) throw new SettingsError([`${subject} a folder that is root’s.`]);
  if ((found.mode & stickyBit) !== 0)
    throw new SettingsError([`${subject} a folder of its own; this one is for everybody to write in.`]);
  const tight = (found.mode & 0o7777) === mode && found.gid === gid;
  if (!tight && !readdirSync(path).every(isOurs))
    throw new SettingsError([`${subject} a folder of its own; this one holds other things.`]);
  // Mode first: after the owner changed, root without CAP_FOWNER may still change it, since root stays the owner.
  chmodSync(path, mode);
  chownSync(path, 0, gid);
};
