/**
 * Purpose: the ledger on disk: an SQLite database in the state dir, root's alone.
 * Rights: root; opens files in the state dir only.
 * Called by: thread.ts, which is the only one that has it open (locking_mode EXCLUSIVE: no shared memory file either,
 * whose growth on a full disk would be a SIGBUS).
 * Fails: what SQLite refuses is thrown; open-database.ts sets a file aside that is not sound.
 *
 * Durability: WAL with synchronous=NORMAL. What was committed survives the end of any process; a power loss or a
 * crash of the kernel can take the latest commits, never an older one or the file. The next start notices that
 * (another boot id, not closed well) and from then on does not say of an operation of that time that it never began.
 */
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { mintedAt, uuidBytes, uuidText } from '../../protocol/operation-id.ts';
import { Facts } from './facts.ts';
import { keepLog } from './keep-log.ts';
import { migrations } from './migrations.ts';
import type { Finish, Interrupted, LedgerAnswer, LedgerRecord, NewRecord } from './record.ts';

const pageBytes = 4096;
/** Pages kept free within the file for records on a disk that a user has filled: about 15,000 records. */
const reservePages = 1024;
/** The log is written back at this size; priming made it twice as long, and overwriting it needs no new block. */
const checkpointPages = reservePages / 2;
/** The largest file that is looked through at its start: 512 MiB, some three million records. */
const checkedPagesMax = 131_072;
/** How long another process may take to be done with the file, ms: a person who looks into it, not a second service. */
const busyWaitMs = 3_000;
/** Records that are removed in one transaction: others wait for it. */
const expireBatch = 500;

const columns =
  'id, user, name AS operation, digest, state, started_at AS startedAt, finished_at AS finishedAt, outcome, exit';

/** Marks the file as a ledger of this program (PRAGMA application_id): "WRLg". */
const applicationId = 0x57524c67;

/** A file that was written by a newer version of this program. */
export class NewerSchema extends Error {}

/** A database that is no ledger. */
export class ForeignFile extends Error {}

/** The open ledger. */
export class LedgerDatabase {
  readonly facts: Facts;
  readonly #path: string;
  readonly #database: DatabaseSync;
  readonly #insert: StatementSync;
  readonly #update: StatementSync;
  readonly #byKey: StatementSync;
  readonly #byId: StatementSync;
  readonly #oldest: StatementSync;
  readonly #expire: StatementSync;

  /**
   * Opens or makes the file and brings it to this version's schema.
   * @throws NewerSchema, ForeignFile, or what SQLite says; the file is as it was then
   */
  constructor(path: string) {
    const database = new DatabaseSync(path, { timeout: busyWaitMs });
    this.#path = path;
    this.#database = database;
    try {
      // First of all: the first read of a file with a log would make the shared memory file, which a full disk refuses.
      database.exec('PRAGMA locking_mode = EXCLUSIVE;');
      this.#recognize();
      database.exec(
        `PRAGMA page_size = ${pageBytes}; PRAGMA journal_mode = WAL;
         PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = ${checkpointPages}; PRAGMA temp_store = MEMORY;
         PRAGMA trusted_schema = OFF;`,
      );
      this.#migrate();
      this.facts = new Facts(database);
      this.#insert = database.prepare(
        `INSERT INTO operation (id, user, name, key, digest, state, started_at) VALUES (?, ?, ?, ?, ?, 'running', ?)
         ON CONFLICT DO NOTHING`,
      );
      this.#update = database.prepare(
        `UPDATE operation SET state = 'finished', finished_at = ?, outcome = ?, exit = ?, key = iif(?, NULL, key)
         WHERE id = ?`,
      );
      this.#byKey = database.prepare(`SELECT ${columns} FROM operation WHERE user = ? AND key = ?`);
      this.#byId = database.prepare(`SELECT ${columns} FROM operation WHERE id = ?`);
      this.#oldest = database.prepare(
        `SELECT max(seq) AS last FROM (SELECT seq, started_at, state FROM operation ORDER BY seq LIMIT ${expireBatch})
         WHERE started_at < ? AND state <> 'running'`,
      );
      this.#expire = database.prepare("DELETE FROM operation WHERE seq <= ? AND started_at < ? AND state <> 'running'");
    } catch (error) {
      database.close();
      throw error;
    }
  }

  /**
   * True if SQLite finds nothing wrong in the file. That reads all of it, so a very large one is taken as it is: init
   * does not wait for ever, and damage in it shows as `ledger_unavailable` where it is.
   */
  get sound(): boolean {
    if (this.#pragma('page_count') > checkedPagesMax) return true;
    return this.#database.prepare('PRAGMA quick_check(1)').get()?.['quick_check'] === 'ok';
  }

  /** Runs steps as one transaction. What they throw undoes it. */
  transaction<T>(steps: () => T): T {
    this.#database.exec('BEGIN IMMEDIATE');
    try {
      const result = steps();
      this.#database.exec('COMMIT');
      return result;
    } catch (error) {
      // Some errors, a full disk among them, have undone it already (sqlite.org, "Response To Errors Within A Transaction").
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK');
      throw error;
    }
  }

  /** Puts a mutation down before its effect. */
  begin(record: NewRecord): LedgerAnswer {
    const { operationId, user, operation, key, digest, startedAt } = record;
    const { changes } = this.#insert.run(uuidBytes(operationId), user, operation, key, digest, startedAt);
    return { came: changes === 1 ? 'done' : 'duplicate' };
  }

  /** Puts its outcome down. */
  finish({ operationId, finishedAt, outcome, exit, releaseKey }: Finish): void {
    this.#update.run(finishedAt, outcome, exit, releaseKey ? 1 : 0, uuidBytes(operationId));
  }

  byKey(user: number, key: Uint8Array): LedgerAnswer {
    return { came: 'record', record: this.#recordOf(this.#byKey.get(user, key)) };
  }

  byId(operationId: string): LedgerAnswer {
    const record = this.#recordOf(this.#byId.get(uuidBytes(operationId)));
    const gap = record === undefined ? this.facts.gap : undefined;
    const minted = mintedAt(operationId);
    if (gap !== undefined && minted >= gap.from && minted <= gap.to) return { came: 'forgotten' };
    return { came: 'record', record };
  }

  /** Marks what an earlier life left unfinished, and returns it. */
  interruptRunning(): Interrupted[] {
    const sql = "UPDATE operation SET state = 'interrupted' WHERE state = 'running' RETURNING user, name";
    return this.#database
      .prepare(sql)
      .all()
      .map(({ user, name }) => ({ user: Number(user), operation: String(name) }));
  }

  /** When the latest record was begun, ms since 1970; 0 if there is none. */
  get latest(): number {
    return Number(
      this.#database.prepare('SELECT started_at FROM operation ORDER BY seq DESC LIMIT 1').get()?.['started_at'] ?? 0,
    );
  }

  /** Removes some of the records that were begun before `time`. True when there may be more. */
  expire(time: number): boolean {
    const last = this.#oldest.get(time)?.['last'];
    if (typeof last !== 'number') return false;
    this.transaction(() => this.#expire.run(last, time));
    return true;
  }

  /** True when much of the room that priming made is used up. */
  get shortOfRoom(): boolean {
    return this.#pragma('freelist_count') < reservePages / 2;
  }

  /**
   * Makes room within the file and its log while there is some on the disk: SQLite keeps the pages of deleted rows,
   * and a log that is begun anew is overwritten in place.
   * Source: specification, Protocol, "Ledger" (3,000 commits on a full disk; unprimed none).
   */
  prime(): void {
    this.transaction(() => this.#database.exec(`INSERT INTO reserve VALUES (zeroblob(${reservePages * pageBytes}))`));
    this.transaction(() => this.#database.exec('DELETE FROM reserve'));
    this.checkpoint();
  }

  /** Writes the log back into the file; the next commit begins it anew. */
  checkpoint(): void {
    this.#database.exec('PRAGMA wal_checkpoint(RESTART)');
  }

  /** Closes it so that the next start knows that nothing is missing. */
  close(): void {
    this.#database.exec('PRAGMA synchronous = FULL');
    this.facts.set({ closed_well: 1 });
    this.checkpoint();
    keepLog(this.#path, () => this.#database.close());
  }

  /** Gives the file up as it is. */
  abandon(): void {
    this.#database.close();
  }

  #pragma(name: string): number {
    return Number(this.#database.prepare(`PRAGMA ${name}`).get()?.[name]);
  }

  /** Before anything is written. */
  #recognize(): void {
    if (this.#pragma('page_count') > 0 && this.#pragma('application_id') !== applicationId)
      throw new ForeignFile('the file is no ledger');
    if (this.#pragma('user_version') > migrations.length) throw new NewerSchema('the ledger is of a newer version');
  }

  #migrate(): void {
    const version = this.#pragma('user_version');
    migrations.slice(version).forEach((step, index) => {
      this.transaction(() =>
        this.#database.exec(
          `${step} PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${version + index + 1};`,
        ),
      );
    });
  }

  #recordOf(row: Record<string, unknown> | undefined): LedgerRecord | undefined {
    if (row === undefined) return undefined;
    const { id, ...rest } = row;
    return { ...(rest as Omit<LedgerRecord, 'operationId'>), operationId: uuidText(id as Uint8Array) };
  }
}
