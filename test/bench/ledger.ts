import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pino } from 'pino';
import { mintOperationId, uuidBytes } from '../../protocol/operation-id.ts';
import { Ledger } from '../../worker/ledger/ledger.ts';
import { percentile } from './statistics.ts';
import { figure, type Row } from './table.ts';

const records = 1_000_000;
const log = pino({ level: 'silent' });
const dayMs = 86_400_000;

const open = (stateDir: string): Promise<Ledger> => Ledger.open({ stateDir, retainMs: 7 * dayMs }, log);

/** One mutation's share of the ledger: what is waited for before its effect, and before its answer. */
const mutation = async (ledger: Ledger, user: number): Promise<number> => {
  const started = performance.now();
  const operationId = mintOperationId();
  const digest = ledger.digests.ofRequest('exec', { user, tool: 'true' });
  await ledger.begin({ operationId, user, operation: 'exec', digest, key: null, startedAt: Date.now() });
  await ledger.finish({ operationId, finishedAt: Date.now(), outcome: 'ok', exit: 0, releaseKey: false });
  return performance.now() - started;
};

/** As many as at a time come from that many callers. */
const mutations = async (ledger: Ledger, callers: number, each: number): Promise<number[]> => {
  const times: number[] = [];
  await Promise.all(
    Array.from({ length: callers }, async (_, caller) => {
      for (let index = 0; index < each; index += 1) times.push(await mutation(ledger, caller));
    }),
  );
  return times;
};

/** As a service would have them after a week of work. */
const fillWith = (stateDir: string, count: number): void => {
  const database = new DatabaseSync(join(stateDir, 'ledger.db'));
  const insert = database.prepare(
    `INSERT INTO operation (id, user, name, key, digest, state, started_at, finished_at, outcome, exit)
     VALUES (?, ?, 'exec', ?, ?, 'finished', ?, ?, 'ok', 0)`,
  );
  const first = Date.now() - 6 * dayMs;
  database.exec('BEGIN');
  for (let index = 0; index < count; index += 1) {
    const at = first + Math.floor((index * 5 * dayMs) / count);
    const id = uuidBytes(mintOperationId(at));
    const digest = Buffer.concat([id, id]);
    insert.run(id, index % 1_000, index % 2 === 0 ? null : digest, digest, at, at + 10);
  }
  database.exec('COMMIT');
  database.close();
};

/** What the ledger adds to a mutation, empty and with a week's records. */
export const ledgerCosts = async (folder: string, each: number): Promise<Row[]> => {
  const stateDir = mkdtempSync(join(folder, 'ledger-'));
  const rows: Row[] = [];
  const measure = async (what: string): Promise<void> => {
    const started = performance.now();
    const ledger = await open(stateDir);
    const openMs = performance.now() - started;
    await mutations(ledger, 16, 50);
    const one = await mutations(ledger, 1, each);
    const sixteen = await mutations(ledger, 16, each);
    rows.push({
      what: `ledger, begin and finish of a mutation, ${what}`,
      figures: [
        figure('one p50', percentile(one, 0.5), 'ms'),
        figure('16 at once p50', percentile(sixteen, 0.5), 'ms'),
        figure('p99', percentile(sixteen, 0.99), 'ms'),
        figure('opening', openMs, 'ms'),
      ],
    });
    await ledger.close();
  };
  await measure('empty');
  fillWith(stateDir, records);
  await measure(`${records.toLocaleString('en')} records`);
  rmSync(stateDir, { recursive: true });
  return rows;
};
