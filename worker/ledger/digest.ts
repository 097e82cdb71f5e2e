/**
 * Purpose: keyed digests, so that the ledger can tell whether two requests or keys are the same and holds neither.
 * Without the key file a digest can't be found by trying what the request may have been.
 * Rights: root; reads or makes one file in the state dir, 0600.
 * Called by: ledger.ts.
 * Fails: a key file of a wrong size stops the start: nobody knows what it was.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { closeSync, constants, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { SettingsError } from '../../protocol/settings.ts';

const keyBytes = 32;

/** The key, and whether it was made just now: then there has been no ledger before. */
export interface LedgerKey {
  readonly key: Buffer;
  readonly isNew: boolean;
}

/** Reads the key, or makes one. A crash in the middle leaves none, never a part of one. @throws SettingsError */
export const readOrMakeKey = (path: string): LedgerKey => {
  try {
    const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      const key = readFileSync(fd);
      if (key.length !== keyBytes) throw new SettingsError(['RUNNER_STATE_DIR holds a ledger key of a wrong size.']);
      return { key, isNew: false };
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  const key = randomBytes(keyBytes);
  const temporary = `${path}.new`;
  const fd = openSync(
    temporary,
    constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW,
    0o600,
  );
  try {
    writeSync(fd, key);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  renameSync(temporary, path);
  return { key, isNew: true };
};

/** Of an environment entry only the name goes in: a value may be a token, which is another one each time. */
const withoutValues = (entries: unknown): unknown =>
  Array.isArray(entries) ? entries.map((entry) => String(entry).split('=', 1)[0]) : entries;

/** An optional field that is empty means the same as one that isn't there. */
const isEmpty = (value: unknown): boolean => value === '' || (Array.isArray(value) && value.length === 0);

/** The same for every order of fields. */
const canonical = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(canonical);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, field]) => [name, canonical(field)]),
  );
};

/** Makes digests with one key. */
export class Digests {
  readonly #key: Buffer;

  constructor(key: Buffer) {
    this.#key = key;
  }

  /** Tells this key from another one. */
  get keyCheck(): string {
    return this.#of('key-check', '').toString('hex');
  }

  /** Of a checked request. Values of environment entries are left out; what is empty counts as absent. */
  ofRequest(operation: string, params: Readonly<Record<string, unknown>>): Uint8Array {
    const { env, ...rest } = Object.fromEntries(Object.entries(params).filter(([, value]) => !isEmpty(value)));
    return this.#of('request', JSON.stringify([operation, canonical(rest), withoutValues(env) ?? null]));
  }

  /** Of an Idempotency-Key. */
  ofKey(idempotencyKey: string): Uint8Array {
    return this.#of('idempotency-key', idempotencyKey);
  }

  #of(purpose: string, text: string): Buffer {
    return createHmac('sha256', this.#key).update(`${purpose}\0${text}`).digest();
  }
}
