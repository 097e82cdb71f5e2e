/**
 * Purpose: the ledger's own thread: a disk that a user keeps busy may stall it, but never the worker's event loop.
 * Rights: the worker's; it opens files in the state dir only.
 * Called by: ledger.ts starts it and asks it, one batch at a time; all of a batch is one commit.
 * Fails: a batch that can't be committed is answered `failed`, as a whole, but for its look-ups. An outcome that can't
 * be put down is kept and tried again with every later batch and at the end: it has been told to its caller, or will be.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { NewerSchema } from './database.ts';
import { openDatabase } from './open-database.ts';
import type { Finish, LedgerAnswer, LedgerOpening, LedgerRequest } from './record.ts';

const { path, keyCheck, isNew, retainMs } = workerData as {
  path: string;
  keyCheck: string;
  isNew: boolean;
  retainMs: number;
};
const port = parentPort;
if (port === null) throw new Error('the ledger runs in a thread of its own');

/** Between two looks for records that are too old, ms; while there are more of them, and when there are none. */
const expireIntervalMs = { more: 100, idle: 600_000 };
/** Outcomes that wait for room on the disk; the oldest go first, and are `interrupted` after a restart. */
const unsavedMax = 10_000;

const say = (message: LedgerOpening | readonly LedgerAnswer[]): void => port.postMessage(message);

const codeOf = (error: unknown): string => {
  const { errcode, code } = error as { errcode?: number; code?: string };
  return errcode === undefined ? (code ?? (error as Error).name) : `SQLITE_${errcode}`;
};

const serve = (opened: ReturnType<typeof openDatabase>): void => {
  const { database, interrupted, setAside, missing, primed } = opened;
  const unsaved: Finish[] = [];

  const answer = (request: LedgerRequest): LedgerAnswer => {
    switch (request.ask) {
      case 'begin':
        return database.begin(request.record);
      case 'finish':
        database.finish(request.finish);
        return { came: 'done' };
      case 'byKey':
        return database.byKey(request.user, request.key);
      case 'byId':
        return database.byId(request.operationId);
    }
  };

  const isWrite = ({ ask }: LedgerRequest): boolean => ask === 'begin' || ask === 'finish';

  /** Reads go on when nothing can be written. */
  const answerAlone = (request: LedgerRequest, writeError: unknown): LedgerAnswer => {
    try {
      if (!isWrite(request)) return answer(request);
    } catch (error) {
      return { came: 'failed', code: codeOf(error) };
    }
    if (request.ask === 'finish') {
      unsaved.push(request.finish);
      if (unsaved.length > unsavedMax) unsaved.shift();
    }
    return { came: 'failed', code: codeOf(writeError) };
  };

  const commit = (batch: readonly LedgerRequest[]): LedgerAnswer[] => {
    const answers = database.transaction(() => {
      for (const finish of unsaved) database.finish(finish);
      return batch.map(answer);
    });
    unsaved.length = 0;
    return answers;
  };

  const take = (batch: readonly LedgerRequest[]): LedgerAnswer[] => {
    try {
      if (unsaved.length === 0 && !batch.some(isWrite)) return batch.map(answer);
      try {
        return commit(batch);
      } catch {
        // A log that can't grow any more may be written back, and begun anew where it is.
        database.checkpoint();
        return commit(batch);
      }
    } catch (error) {
      return batch.map((request) => answerAlone(request, error));
    }
  };

  const expire = (): void => {
    let more = false;
    try {
      more = database.expire(Date.now() - retainMs);
      if (!more && database.shortOfRoom) database.prime();
    } catch {
      // A full disk: nothing is lost by waiting.
    }
    setTimeout(expire, more ? expireIntervalMs.more : expireIntervalMs.idle);
  };

  port.on('message', (message: readonly LedgerRequest[] | 'close') => {
    if (message !== 'close') return say(take(message));
    try {
      take([]);
      database.close();
    } finally {
      process.exit();
    }
  });
  say({ opened: true, interrupted, setAside: setAside !== undefined, missing, primed });
  setTimeout(expire, expireIntervalMs.more);
};

try {
  serve(openDatabase(path, { keyCheck, isNew, now: Date.now() }));
} catch (error) {
  say({ opened: false, code: codeOf(error), newer: error instanceof NewerSchema });
}
