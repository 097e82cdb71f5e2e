/**
 * Purpose: acting on names beneath a held directory descriptor, with what Node has of openat(2): paths through
 * /proc/self/fd.
 * Rights: the user's.
 * Called by: beneath.ts, the verbs and the trash.
 * Fails: with the error of the system call.
 *
 * Names are byte strings: one character for each byte (latin1), since a name need not be valid UTF-8.
 */
import { closeSync, constants, type Dirent, fstatSync, opendirSync, openSync, type Stats } from 'node:fs';

/** O_PATH (asm-generic/fcntl.h, the same on x86-64 and arm64): holds an inode without opening it. */
export const oPath = 0o10000000;

/** What a caller's UTF-8 text is as a byte string. */
export const bytesOf = (text: string): string => Buffer.from(text, 'utf8').toString('latin1');

/** A byte string as text; what is not valid UTF-8 becomes U+FFFD. */
export const textOf = (name: string): string => Buffer.from(name, 'latin1').toString('utf8');

/** The path of what a descriptor holds: opening it opens that inode, whatever its name leads to by now. */
export const held = (descriptor: number): string => `/proc/self/fd/${descriptor}`;

/**
 * The path of one name in a held directory. With a "/" in it the kernel would walk by itself and follow links, even
 * under O_NOFOLLOW; "." and ".." lead elsewhere by definition.
 */
export const at = (directory: number, name: string): Buffer => {
  if (name === '' || name === '.' || name === '..' || /[/\0]/.test(name)) throw new TypeError('not a single name');
  return Buffer.from(`${held(directory)}/${name}`, 'latin1');
};

/** Something that is held: what it was when it was looked at can't be swapped any more. */
export interface Held {
  readonly descriptor: number;
  readonly stat: Stats;
}

/** Holds what a name is, itself: a link is not followed, a pipe or device not opened. To be closed. */
export const hold = (directory: number, name: string): Held => {
  const descriptor = openSync(at(directory, name), oPath | constants.O_NOFOLLOW);
  try {
    return { descriptor, stat: fstatSync(descriptor) };
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
};

/** Holds what a name is while `act` runs. */
export const holding = <T>(directory: number, name: string, act: (found: Held) => T): T => {
  const found = hold(directory, name);
  try {
    return act(found);
  } finally {
    closeSync(found.descriptor);
  }
};

/** How many entries the kernel is asked for at once. */
const entriesAtOnce = 256;

/** The entries of a held directory as they come, however many there are: their names never fill memory. */
export function* entriesOf(directory: number): Generator<{ readonly name: string; readonly entry: Dirent<Buffer> }> {
  // The types know no buffers here; names are handed over as they are in the directory.
  const encoding = 'buffer' as BufferEncoding;
  const folder = opendirSync(held(directory), { encoding, bufferSize: entriesAtOnce });
  try {
    for (let entry = folder.readSync(); entry !== null; entry = folder.readSync()) {
      const found = entry as unknown as Dirent<Buffer>;
      yield { name: found.name.toString('latin1'), entry: found };
    }
  } finally {
    folder.closeSync();
  }
}
