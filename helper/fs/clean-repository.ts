/**
 * Purpose: bare repositories made by hand (gitrepository-layout(5)), so that nothing of the user's is in their
 * configuration: no template, no hook, no remote. One may borrow the objects of a clone; what is to be pushed is taken
 * from it into the other one by a fetch, which names every object anew by what is in it.
 * Rights: the user's.
 * Called by: the verb scratch.
 * Fails: `bad_target` when what would be borrowed is of the wrong kind; what is missing, with the error of the system call.
 *
 * Borrowed objects need the ends of the clone's shallow history: without them git looks for parents that nobody has,
 * and a push fails once upstream has moved on. Of that file only ids come along, and a pipe there is not waited for.
 */
import { type FsCleanRepository, scratchNames } from '../contract/fs.ts';
import { atPlace } from './beneath.ts';
import { at } from './descriptor.ts';
import { firstBytes, makeFile, newMode } from './file.ts';
import { inNewFolder, makeFolder, within } from './folders.ts';
import { pathOf } from './pointers.ts';
import { FsRefusal } from './refusal.ts';

/** Largest file of shallow ends that is taken, bytes: some 25,000 of them. */
const shallowBytesMax = 1024 * 1024;

const configurations = {
  sha1: '[core]\n\trepositoryformatversion = 0\n\tbare = true\n',
  sha256: '[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectFormat = sha256\n',
} as const;
const shallowLines = {
  sha1: /^(?:[0-9a-f]{40}(?:\n|$))*$/,
  sha256: /^(?:[0-9a-f]{64}(?:\n|$))*$/,
} as const;

interface Loan {
  /** Where the objects are, a byte string. */
  readonly objects: string;
  /** The shallow ends; undefined for a clone with its whole history. */
  readonly shallow: Buffer | undefined;
}

/** @throws FsRefusal `bad_target` for anything but a file of ids */
const shallowOf = (git: number, format: FsCleanRepository['format']): Buffer | undefined => {
  try {
    return atPlace({ folder: git, name: 'shallow', names: [] }, (file) => {
      if (!file.stat.isFile()) throw new FsRefusal('bad_target');
      const bytes = firstBytes(file, shallowBytesMax + 1);
      const fit = bytes.length <= shallowBytesMax && shallowLines[format].test(bytes.toString('latin1'));
      if (!fit) throw new FsRefusal('bad_target');
      return bytes;
    });
  } catch (error) {
    if (error instanceof FsRefusal && error.code === 'not_found') return undefined;
    throw error;
  }
};

/** What a clone lends, found by real folders only. */
const loanOf = (home: number, project: string, format: FsCleanRepository['format']): Loan =>
  within(home, ['repos', project, '.git'], (git) => ({
    objects: within(git, ['objects'], pathOf),
    shallow: shallowOf(git, format),
  }));

/** One repository, in the held scratch folder. */
const makeRepository = (scratch: number, own: string, format: FsCleanRepository['format'], loan?: Loan): void => {
  const make = (folder: number, name: string, content: Buffer): void => makeFile(at(folder, name), newMode, content);
  inNewFolder(scratch, own, (folder) => {
    inNewFolder(folder, 'refs', (refs) => {
      for (const name of ['heads', 'tags']) makeFolder(refs, name);
    });
    inNewFolder(folder, 'objects', (objects) => {
      makeFolder(objects, 'pack');
      inNewFolder(objects, 'info', (info) => {
        if (loan !== undefined) make(info, 'alternates', Buffer.from(`${loan.objects}\n`, 'latin1'));
      });
    });
    if (loan?.shallow !== undefined) make(folder, 'shallow', loan.shallow);
    make(folder, 'config', Buffer.from(configurations[format]));
    make(folder, 'HEAD', Buffer.from('ref: refs/heads/none\n'));
  });
};

/** Makes the clean repository in the held scratch folder, and the one that borrows. */
export const makeCleanRepository = (scratch: number, home: number, { format, borrows }: FsCleanRepository): void => {
  makeRepository(scratch, scratchNames.clean, format);
  if (borrows !== null) makeRepository(scratch, scratchNames.borrowed, format, loanOf(home, borrows, format));
};
