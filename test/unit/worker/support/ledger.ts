import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { Answers } from '../../../../worker/ledger/answers.ts';
import { Ledger } from '../../../../worker/ledger/ledger.ts';
import { Mutations } from '../../../../worker/ledger/mutations.ts';
import { collectingLog } from './collect.ts';

const makeFolder = (): string => mkdtempSync(join(tmpdir(), 'ledger-test-'));
const removeFolder = (folder: string): void => rmSync(folder, { recursive: true });

/** A folder of the test's own, removed after it. */
export const stateFolder = (): string => {
  const folder = makeFolder();
  onTestFinished(() => removeFolder(folder));
  return folder;
};

const openIn = async (stateDir: string, retainMs = 86_400_000) => {
  const { log, lines: logged } = collectingLog();
  const ledger = await Ledger.open({ stateDir, retainMs }, log);
  const answers = new Answers();
  return { ledger, answers, mutations: new Mutations(ledger, answers), logged, stateDir };
};

/** A real ledger, closed by the test, or after it. */
export const openLedger = async (stateDir: string = stateFolder(), retainMs?: number) => {
  const parts = await openIn(stateDir, retainMs);
  let closed: Promise<void> | undefined;
  const close = (): Promise<void> => {
    closed ??= parts.ledger.close();
    return closed;
  };
  onTestFinished(close);
  return { ...parts, close };
};

/**
 * One real ledger for all tests of a file, at whose top level this is called: opening one makes room on the disk, which
 * takes a while.
 */
export const ledgerOfThisFile = () => {
  let parts: Awaited<ReturnType<typeof openIn>> | undefined;
  beforeAll(async () => {
    parts = await openIn(makeFolder());
  });
  afterAll(async () => {
    await parts?.ledger.close();
    if (parts !== undefined) removeFolder(parts.stateDir);
  });
  return () => {
    if (parts === undefined) throw new Error('it is open while a test runs');
    return parts;
  };
};
