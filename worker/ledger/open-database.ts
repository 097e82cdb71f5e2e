/**
 * Purpose: opens the ledger's file, and decides what becomes of one that isn't sound.
 * Rights: root; opens and renames files in the state dir only.
 * Called by: thread.ts, once.
 * Fails: a file that is not sound, or was made with another key, is kept under another name, told of, and from then
 * on no unknown operation of that time is said to have never begun. A file of a newer version stops the start.
 */
import { existsSync, readFileSync, renameSync } from 'node:fs';
import { ForeignFile, LedgerDatabase, NewerSchema } from './database.ts';
import type { Interrupted } from './record.ts';

/** What was found. */
export interface OpenedLedger {
  readonly database: LedgerDatabase;
  /** Operations that an earlier life left unfinished. */
  readonly interrupted: readonly Interrupted[];
  /** Where a file that can't be used was put. */
  readonly setAside: string | undefined;
  /** There was a ledger, as its key shows, and the file is not there, or was begun and not finished beginning. */
  readonly missing: boolean;
  /** False when the disk has no room to be kept free for a full one. */
  readonly primed: boolean;
}

const readBootId = (): string => readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();

/** Opens the file if all of it is sound and belongs to this key. */
const openSound = (path: string, keyCheck: string): LedgerDatabase | undefined => {
  let database: LedgerDatabase;
  try {
    database = new LedgerDatabase(path);
  } catch (error) {
    if (error instanceof NewerSchema || !(error instanceof ForeignFile || isDamage(error))) throw error;
    return undefined;
  }
  try {
    const ours = (database.facts.text('key_check') ?? keyCheck) === keyCheck;
    if (ours && database.sound) return database;
  } catch (error) {
    database.abandon();
    if (!isDamage(error)) throw error;
    return undefined;
  }
  database.abandon();
  return undefined;
};

/** SQLITE_CORRUPT, SQLITE_NOTADB; anything else (no room, no memory) may pass. */
const damageCodes: ReadonlySet<unknown> = new Set([11, 26]);
const isDamage = (error: unknown): boolean => damageCodes.has(Number((error as { errcode?: number }).errcode) & 0xff);

const setAside = (path: string, now: number): string => {
  const name = `${path}.damaged-${now}`;
  // The log first: with it the file may still tell a person something, and a new file must not get an old log.
  if (existsSync(`${path}-wal`)) renameSync(`${path}-wal`, `${name}-wal`);
  renameSync(path, name);
  return name;
};

/**
 * An operation is minted before it begins: by the wait for its key, and on the link. What was lost may have been
 * minted this long before the last record that was not, ms.
 */
const mintedAheadMs = 600_000;

interface Opening {
  readonly keyCheck: string;
  /** The key was made just now. */
  readonly isNew: boolean;
  /** ms since 1970. */
  readonly now: number;
}

/**
 * Opens the ledger.
 * @throws NewerSchema, or what SQLite or the file system says
 */
export const openDatabase = (path: string, { keyCheck, isNew, now }: Opening): OpenedLedger => {
  const sound = openSound(path, keyCheck);
  const aside = sound === undefined ? setAside(path, now) : undefined;
  const database = sound ?? new LedgerDatabase(path);
  const { facts } = database;
  const bootId = readBootId();
  const begunBefore = facts.text('key_check') !== undefined;
  // Also after a start that was killed when it had put a file aside and this one did not tell of it yet.
  const missing = aside === undefined && !begunBefore && !isNew;
  const interrupted = database.transaction(() => {
    // Nothing is known of what was on record; a record may also be gone with the power, see database.ts.
    if (aside !== undefined || missing) facts.addGap({ from: 0, to: now });
    else if (begunBefore && !facts.closedWell && facts.text('boot_id') !== bootId)
      facts.addGap({ from: database.latest - mintedAheadMs, to: now });
    facts.set({ key_check: keyCheck, boot_id: bootId, closed_well: 0 });
    return database.interruptRunning();
  });
  return { database, interrupted, setAside: aside, missing, primed: primed(database) };
};

const primed = (database: LedgerDatabase): boolean => {
  try {
    database.prime();
    return true;
  } catch {
    return false;
  }
};
