/**
 * Purpose: reading a held regular file.
 * Rights: the user's.
 * Called by: the verb read, and registrations.ts.
 * Fails: with the error of the system call; EAGAIN when the user holds a lease on it.
 */
import { closeSync, constants, openSync, readSync } from 'node:fs';
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
