import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { keepLog } from '../../../../worker/ledger/keep-log.ts';
import { stateFolder } from '../support/ledger.ts';

const logOf = (): { path: string; log: string; kept: string } => {
  const path = join(stateFolder(), 'ledger.db');
  writeFileSync(`${path}-wal`, Buffer.alloc(10_000, 7));
  return { path, log: `${path}-wal`, kept: `${path}-wal-kept` };
};

it('a log that is removed is there again, empty, in the blocks that it had', () => {
  const { path, log, kept } = logOf();
  const { ino } = statSync(log);
  writeFileSync(kept, 'of an earlier stop that was cut short');
  keepLog(path, () => rmSync(log));
  expect(statSync(log)).toMatchObject({ ino, size: 10_000 });
  expect(readFileSync(log).subarray(0, 32).equals(Buffer.alloc(32))).toBe(true);
  expect(existsSync(kept)).toBe(false);
});

it('a log that SQLite leaves, since it is not written back, is not touched', () => {
  const { path, log, kept } = logOf();
  keepLog(path, () => undefined);
  expect(readFileSync(log).equals(Buffer.alloc(10_000, 7))).toBe(true);
  expect(existsSync(kept)).toBe(false);
});

it('a close is done without a log too, and its error is told', () => {
  const { path, log } = logOf();
  rmSync(log);
  expect(() =>
    keepLog(path, () => {
      throw new Error('as SQLite says');
    }),
  ).toThrow('as SQLite says');
  expect(existsSync(log)).toBe(false);
});
