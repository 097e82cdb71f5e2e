/**
 * Purpose: keeps the blocks of the log over a clean stop. SQLite removes the log when it closes, and on a disk that
 * a user has filled by then the next start could not make one, and with it nothing could be begun or looked up.
 * Rights: root; the log and one more name of it, in the state dir only.
 * Called by: database.ts, when it closes.
 * Fails: without a log, as SQLite leaves it; the close itself is always done.
 */
import { closeSync, constants, existsSync, linkSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';

/** A log that does not begin with its magic number is empty (sqlite.org, "WAL-mode File Format", 4.1). */
const noHeader = Buffer.alloc(32);

/** Gives up what is in the log, and keeps its blocks: the next one is written over them. */
const blank = (path: string): void => {
  const file = openSync(path, constants.O_WRONLY | constants.O_NOFOLLOW);
  try {
    writeSync(file, noHeader, 0, noHeader.length, 0);
  } finally {
    closeSync(file);
  }
};

/** Closes a database whose log is written back, and leaves an empty log as long as the one it had. */
export const keepLog = (path: string, close: () => void): void => {
  const [log, kept] = [`${path}-wal`, `${path}-wal-kept`];
  try {
    // Of a stop that was cut short: never to be a log again, for the file may have gone on since.
    rmSync(kept, { force: true });
    linkSync(log, kept);
  } catch {
    // It has no room of its own then.
  }
  close();
  try {
    // SQLite leaves a log that it could not write back, and this is another name of the same file.
    if (existsSync(log)) rmSync(kept, { force: true });
    else {
      blank(kept);
      renameSync(kept, log);
    }
  } catch {
    // As above.
  }
};
