/**
 * Purpose: the ledger's schema, as steps from each version to the next. PRAGMA user_version counts the steps taken.
 * Rights: none. Texts only.
 * Called by: database.ts, when it opens.
 * Fails: a step that does not succeed leaves the version before it; a file of a newer version is not touched.
 *
 * A step that has been released is never changed: add another one.
 */
export const migrations: readonly string[] = [
  `CREATE TABLE operation (
     seq         INTEGER PRIMARY KEY,
     id          BLOB NOT NULL UNIQUE,
     user        INTEGER NOT NULL,
     name        TEXT NOT NULL,
     key         BLOB,
     digest      BLOB NOT NULL,
     state       TEXT NOT NULL,
     started_at  INTEGER NOT NULL,
     finished_at INTEGER,
     outcome     TEXT,
     exit        INTEGER
   ) STRICT;
   CREATE UNIQUE INDEX operation_key ON operation (user, key) WHERE key IS NOT NULL;
   CREATE INDEX operation_running ON operation (seq) WHERE state = 'running';
   CREATE TABLE fact (name TEXT PRIMARY KEY, value ANY NOT NULL) STRICT;
   CREATE TABLE reserve (filler BLOB NOT NULL) STRICT;`,
];
