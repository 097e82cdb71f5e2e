import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach } from 'vitest';
import { Answers } from '../../../../worker/ledger/answers.ts';
import { Ledger } from '../../../../worker/ledger/ledger.ts';
import { Mutations } from '../../../../worker/ledger/mutations.ts';
import { collectingLog } from './collect.ts';

const folders: string[] = [];
const open = new Set<Ledger>();

let shared: ReturnType<typeof openLedger> | undefined;

afterEach(async () => {
  for (const ledger of open) await ledger.close();
  open.clear();
});

afterAll(async () => {
  await (await shared)?.close();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

/** A folder of the test's own, removed after it. */
export const stateFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'ledger-test-'));
  folders.push(folder);
  return folder;
};

/** A real ledger, closed after the test. */
export const openLedger = async (stateDir: string = stateFolder(), retainMs = 86_400_000) => {
  const { log, lines: logged } = collectingLog();
  const ledger = await Ledger.open({ stateDir, retainMs }, log);
  open.add(ledger);
  const answers = new Answers();
  const close = async (): Promise<void> => {
    open.delete(ledger);
    await ledger.close();
  };
  return { ledger, answers, mutations: new Mutations(ledger, answers), logged, close, stateDir };
};

/** One real ledger for all tests of a file: opening one makes room on the disk, which takes a while. */
export const sharedLedger = async () => {
  if (shared === undefined) {
    shared = openLedger();
    open.delete((await shared).ledger);
  }
  return shared;
};
