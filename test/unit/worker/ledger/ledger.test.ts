import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ProtocolViolation } from '../../../../protocol/msgpack-check.ts';
import { mintOperationId, uuidBytes } from '../../../../protocol/operation-id.ts';
import { SettingsError } from '../../../../protocol/settings.ts';
import { LedgerDatabase } from '../../../../worker/ledger/database.ts';
import type { Ledger } from '../../../../worker/ledger/ledger.ts';
import type { Finish, NewRecord } from '../../../../worker/ledger/record.ts';
import { eventually } from '../../../support/wait.ts';
import { openLedger, stateFolder } from '../support/ledger.ts';

const newRecord = (more: Partial<NewRecord> = {}): NewRecord => ({
  operationId: mintOperationId(),
  user: 7,
  operation: 'exec',
  digest: Buffer.alloc(32),
  key: null,
  startedAt: Date.now(),
  ...more,
});

const recordOf = (ledger: Ledger, more: Partial<NewRecord> = {}): NewRecord =>
  newRecord({ digest: ledger.digests.ofRequest('exec', { user: 7 }), ...more });

const finishOf = (operationId: string, more: Partial<Finish> = {}): Finish => ({
  operationId,
  finishedAt: Date.now(),
  outcome: 'ok',
  exit: 0,
  releaseKey: false,
  ...more,
});

describe('a record', () => {
  it('is found by its id and its key, first running, then finished', async () => {
    const { ledger } = await openLedger();
    const key = ledger.digests.ofKey('a');
    const record = recordOf(ledger, { key });
    expect(await ledger.byId(record.operationId)).toBeUndefined();
    await ledger.begin(record);
    const { key: _, ...running } = { ...record, state: 'running', finishedAt: null, outcome: null, exit: null };
    expect(await ledger.byId(record.operationId)).toEqual({ ...running, digest: new Uint8Array(record.digest) });
    const finish = finishOf(record.operationId, { outcome: 'timeout', exit: 3 });
    await ledger.finish(finish);
    const found = await ledger.byKey(7, key);
    expect(found).toMatchObject({
      state: 'finished',
      outcome: 'timeout',
      exit: 3,
      finishedAt: finish.finishedAt,
      startedAt: record.startedAt,
    });
    expect(await ledger.byKey(8, key), 'another user’s').toBeUndefined();
  });

  it('is refused under an id that is on record, as a sign of a taken gateway', async () => {
    const { ledger } = await openLedger();
    const record = recordOf(ledger);
    await ledger.begin(record);
    await ledger.finish(finishOf(record.operationId));
    await expect(ledger.begin(record)).rejects.toThrow(ProtocolViolation);
    expect(await ledger.byId(record.operationId)).toMatchObject({ state: 'finished' });
  });

  it('gives its key free when nothing took effect', async () => {
    const { ledger } = await openLedger();
    const key = ledger.digests.ofKey('a');
    const first = recordOf(ledger, { key });
    await ledger.begin(first);
    await ledger.finish(finishOf(first.operationId, { outcome: 'not_found', exit: null, releaseKey: true }));
    expect(await ledger.byKey(7, key)).toBeUndefined();
    expect(await ledger.byId(first.operationId)).toMatchObject({ outcome: 'not_found' });
    await ledger.begin(recordOf(ledger, { key }));
  });

  it('is one of many that come at once', async () => {
    const { ledger } = await openLedger();
    const records = Array.from({ length: 500 }, () => recordOf(ledger));
    await Promise.all(records.map((record) => ledger.begin(record)));
    await Promise.all(records.map(({ operationId }) => ledger.finish(finishOf(operationId))));
    for (const { operationId } of records) expect(await ledger.byId(operationId)).toMatchObject({ state: 'finished' });
  });
});

describe('a later life', () => {
  it('knows what was finished, and that the rest was interrupted', async () => {
    const first = await openLedger();
    const [done, cut] = [recordOf(first.ledger), recordOf(first.ledger, { key: first.ledger.digests.ofKey('k') })];
    await first.ledger.begin(done);
    await first.ledger.begin(cut);
    await first.ledger.finish(finishOf(done.operationId, { exit: 5 }));
    await first.close();
    const { ledger, logged } = await openLedger(first.stateDir);
    expect(await ledger.byId(done.operationId)).toMatchObject({ state: 'finished', outcome: 'ok', exit: 5 });
    expect(await ledger.byKey(7, ledger.digests.ofKey('k'))).toMatchObject({ state: 'interrupted', outcome: null });
    expect(logged.join()).toContain('"interrupted":1');
  });

  it('forgets what is older than the retention, but nothing that runs', async () => {
    const database = new LedgerDatabase(join(stateFolder(), 'ledger.db'));
    onTestFinished(() => database.close());
    const now = Date.now();
    const [oldRunning, old, young] = [now - 61_000, now - 61_000, now].map((startedAt) => newRecord({ startedAt }));
    if (!old || !oldRunning || !young) throw new Error('no records');
    for (const record of [oldRunning, old, young]) database.begin(record);
    for (const { operationId } of [old, young]) database.finish(finishOf(operationId));
    expect(database.expire(now - 60_000)).toBe(true);
    const isThere = ({ operationId }: NewRecord): boolean => {
      const found = database.byId(operationId);
      return found.came === 'record' && found.record !== undefined;
    };
    expect([oldRunning, old, young].map(isThere)).toEqual([true, false, true]);
    expect(database.expire(now - 60_000)).toBe(false);
  });

  it('is looked for by its age soon after each start', async () => {
    const first = await openLedger();
    const [old, young] = [Date.now() - 61_000, Date.now()].map((startedAt) => recordOf(first.ledger, { startedAt }));
    if (!old || !young) throw new Error('no records');
    for (const record of [old, young]) {
      await first.ledger.begin(record);
      await first.ledger.finish(finishOf(record.operationId));
    }
    await first.close();
    const { ledger } = await openLedger(first.stateDir, 60_000);
    await eventually('the old one to go', async () => (await ledger.byId(old.operationId)) === undefined);
    expect(await ledger.byId(young.operationId)).toBeDefined();
  });
});

describe('the files', () => {
  it('hold nothing that a caller wrote', async () => {
    const { ledger, stateDir } = await openLedger();
    const params = { user: 7, tool: 'git', args: ['planted-argument'], env: ['NAME=planted-value'] };
    const digest = ledger.digests.ofRequest('exec', params);
    await ledger.begin(recordOf(ledger, { digest, key: ledger.digests.ofKey('planted-key') }));
    const files = readdirSync(stateDir);
    expect(files.sort()).toStrictEqual(['ledger.db', 'ledger.db-wal', 'ledger.key']);
    for (const file of files) {
      expect(readFileSync(join(stateDir, file)).includes('planted'), file).toBe(false);
    }
    // It was written at all, and is found by what is there instead.
    expect(readFileSync(join(stateDir, 'ledger.db-wal')).includes(digest)).toBe(true);
  });
});

/** A ledger with one finished record, closed. */
const closedLedger = async () => {
  const { ledger, stateDir, close } = await openLedger();
  const record = recordOf(ledger);
  await ledger.begin(record);
  await ledger.finish(finishOf(record.operationId));
  await close();
  return { path: join(stateDir, 'ledger.db'), stateDir, operationId: record.operationId };
};

describe('a file that can’t be used', () => {
  const damages: readonly (readonly [string, (path: string, operationId: string) => void])[] = [
    ['is no database', (path) => writeFileSync(path, 'x'.repeat(100_000))],
    ['is cut off', (path) => writeFileSync(path, readFileSync(path).subarray(0, 10_000))],
    [
      'is overwritten in the middle',
      (path) => {
        const bytes = readFileSync(path);
        // All pages but the first, which holds the header: every table and index is hit.
        bytes.fill(0x5a, 4096, 20 * 4096);
        writeFileSync(path, bytes);
      },
    ],
    [
      'has one damaged page, of records',
      (path, operationId) => {
        const bytes = readFileSync(path);
        const found = bytes.indexOf(uuidBytes(operationId));
        if (found < 0) throw new Error('the record is not in the file');
        // The head of its b-tree page.
        bytes.fill(0, found - (found % 4096), found - (found % 4096) + 8);
        writeFileSync(path, bytes);
      },
    ],
    [
      'is of another program',
      (path) => {
        writeFileSync(path, '');
        const database = new DatabaseSync(path);
        database.exec('CREATE TABLE operation (other TEXT); PRAGMA user_version = 1');
        database.close();
      },
    ],
    ['was made with another key', (path) => writeFileSync(join(path, '../ledger.key'), Buffer.alloc(32, 7))],
  ];
  it.each(damages)('since it %s is kept, told of, and never said to hold nothing', async (_what, damage) => {
    const { path, stateDir, operationId } = await closedLedger();
    damage(path, operationId);
    copyFileSync(path, `${stateDir}/copy`);
    const { ledger, logged } = await openLedger(stateDir);
    expect(logged.join()).toContain('ledger.db.damaged-');
    const kept = readdirSync(stateDir).filter((name) => /^ledger\.db\.damaged-\d+$/.test(name));
    expect(kept).toHaveLength(1);
    expect(readFileSync(join(stateDir, kept[0] ?? '')).equals(readFileSync(`${stateDir}/copy`))).toBe(true);
    await expect(ledger.byId(operationId), 'it did begin').rejects.toMatchObject({ code: 'ledger_unavailable' });
    const record = recordOf(ledger);
    await ledger.begin(record);
    expect(await ledger.byId(record.operationId)).toMatchObject({ state: 'running' });
    expect(await ledger.byId(mintOperationId(Date.now() + 1_000)), 'one of later').toBeUndefined();
  });

  it('is gone: told of, and never said to have held nothing', async () => {
    const { path, stateDir, operationId } = await closedLedger();
    rmSync(path);
    const { ledger, logged, close } = await openLedger(stateDir);
    expect(logged.join()).toContain('its ledger is gone');
    await expect(ledger.byId(operationId), 'it did begin').rejects.toMatchObject({ code: 'ledger_unavailable' });
    await close();
    const again = await openLedger(stateDir);
    expect(again.logged.join(), 'the new one is there').not.toContain('is gone');
    await expect(again.ledger.byId(operationId)).rejects.toMatchObject({ code: 'ledger_unavailable' });
  });

  it('was never there: nothing is told, and nothing began', async () => {
    const { ledger, logged } = await openLedger();
    expect(logged.join()).not.toContain('gone');
    expect(await ledger.byId(mintOperationId())).toBeUndefined();
  });

  it('is of a newer version: the start is refused and the file left alone', async () => {
    const { path, stateDir } = await closedLedger();
    const database = new DatabaseSync(path);
    database.exec('PRAGMA user_version = 99');
    database.close();
    const before = readFileSync(path);
    await expect(openLedger(stateDir)).rejects.toThrow('of a newer version');
    await expect(openLedger(stateDir)).rejects.toThrow(SettingsError);
    expect(readFileSync(path).equals(before)).toBe(true);
    expect(readdirSync(stateDir).sort()).toStrictEqual(['ledger.db', 'ledger.key']);
  });

  it('can’t be opened: the start fails, and may be tried again', async () => {
    const stateDir = stateFolder();
    mkdirSync(join(stateDir, 'ledger.db'));
    const error: unknown = await openLedger(stateDir).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(Error);
    expect(error).not.toBeInstanceOf(SettingsError);
    expect(String(error)).toContain('SQLITE_14');
  });

  it('has a key of a wrong size: the start is refused', async () => {
    const stateDir = stateFolder();
    writeFileSync(join(stateDir, 'ledger.key'), 'short');
    await expect(openLedger(stateDir)).rejects.toThrow(SettingsError);
    expect(existsSync(join(stateDir, 'ledger.db'))).toBe(false);
  });
});

describe('a machine that went down', () => {
  const facts = async (stateDir: string, sql: string): Promise<void> => {
    const database = new DatabaseSync(join(stateDir, 'ledger.db'));
    database.exec(sql);
    database.close();
  };

  it('leaves no certainty about the time before, after the last record', async () => {
    const { stateDir, operationId } = await closedLedger();
    const lost = mintOperationId();
    await facts(stateDir, "UPDATE fact SET value = 0 WHERE name = 'closed_well'");
    await facts(stateDir, "UPDATE fact SET value = 'another' WHERE name = 'boot_id'");
    const { ledger } = await openLedger(stateDir);
    await expect(ledger.byId(lost)).rejects.toMatchObject({ code: 'ledger_unavailable' });
    const waited = mintOperationId(Date.now() - 60_000);
    await expect(ledger.byId(waited), 'it may have begun later').rejects.toMatchObject({ code: 'ledger_unavailable' });
    expect(await ledger.byId(operationId)).toMatchObject({ state: 'finished' });
    expect(await ledger.byId(mintOperationId(Date.now() - 3_600_000)), 'long before').toBeUndefined();
  });

  it('is no loss when the ledger was closed, or when only the worker went down', async () => {
    const { stateDir } = await closedLedger();
    const unknown = mintOperationId();
    await facts(stateDir, "UPDATE fact SET value = 'another' WHERE name = 'boot_id'");
    const second = await openLedger(stateDir);
    expect(await second.ledger.byId(unknown)).toBeUndefined();
    await second.close();
    await facts(stateDir, "UPDATE fact SET value = 0 WHERE name = 'closed_well'");
    const third = await openLedger(stateDir);
    expect(await third.ledger.byId(unknown)).toBeUndefined();
  });
});
