/**
 * Purpose: reading a held regular file, and making a new one.
 * Rights: the user's.
 * Called by: the verbs that read or make files, and what they share.
 * Fails: with the error of the system call; EAGAIN when the user holds a lease on what is read.
 */
import { closeSync, constants, fchmodSync, openSync, readSync, writeSync } from 'node:fs';
import { type Held, held } from './descriptor.ts';

/**
 * The first `bytesMax` bytes of a held regular file, fewer only where it ends. Opening anything else could wait for
 * ever or do something; opening a file can wait too, for a lease (fcntl(2), F_SETLEASE), but for O_NONBLOCK.
 */
export const firstBytes = ({ descriptor, stat }: Held, bytesMax: number): Buffer => {
  if (!stat.isFile()) throw new TypeError('not a regular file');
  const opened = openSync(held(descriptor), constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    // To its end, whatever size it had: a file that grows meanwhile is not cut where it ended before.
    const bytes = Buffer.allocUnsafe(bytesMax);
    let filled = 0;
    for (let count = -1; filled < bytes.length && count !== 0; filled += count) {
      count = readSync(opened, bytes, filled, bytes.length - filled, filled);
    }
    return bytes.subarray(0, filled);
  } finally {
    closeSync(opened);
  }
};

/** Mode of a new file. */
export const newMode = 0o600;

/** Makes a file where nothing is; while it is filled, it is its owner's alone. */
export const makeFile = (path: Buffer, mode: number, content: Buffer): void => {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
  const descriptor = openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, newMode);
  try {
    for (let written = 0; written < content.length; ) written += writeSync(descriptor, content, written);
    fchmodSync(descriptor, mode);
  } finally {
    closeSync(descriptor);
  }
};
