/**
 * Purpose: the worker's durable memory of mutations: what was begun, and what became of it.
 * Rights: root; the state dir only, through its own thread (thread.ts) and the key file (digest.ts).
 * Called by: mutations.ts for every mutation; the handler of operation.status; main.ts at start and stop.
 * Fails: what can't be put down before an effect refuses the mutation (`ledger_unavailable`); an outcome that can't
 * be put down is logged and tried again. A thread that dies is a bug and ends the worker: without it nothing is safe.
 */
import { extname, join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Logger } from 'pino';
import { Refusal } from '../../protocol/errors.ts';
import { ProtocolViolation } from '../../protocol/msgpack-check.ts';
import { SettingsError } from '../../protocol/settings.ts';
import { Batches, type Came } from './batches.ts';
import { Digests, readOrMakeKey } from './digest.ts';
import type {
  Finish,
  Interrupted,
  LedgerAnswer,
  LedgerOpening,
  LedgerRecord,
  LedgerRequest,
  NewRecord,
} from './record.ts';

interface LedgerSettings {
  readonly stateDir: string;
  /** Records older than this go, ms. */
  readonly retainMs: number;
}

/** The extension is this file's own: the thread is compiled where this is, and isn't where it isn't. */
const threadProgram = new URL(`./thread${extname(import.meta.filename)}`, import.meta.url);

/** SQLITE_BUSY, after waiting for what may pass (see database.ts): another process has the file open for itself. */
const busyCode = 'SQLITE_5';

/** The ledger, as the worker's main thread sees it. */
export class Ledger {
  readonly digests: Digests;
  /** What an earlier life left unfinished. */
  readonly interrupted: readonly Interrupted[];
  readonly #thread: Worker;
  readonly #log: Logger;
  readonly #batches: Batches;
  #failing = false;

  private constructor(thread: Worker, digests: Digests, interrupted: readonly Interrupted[], log: Logger) {
    this.#thread = thread;
    this.digests = digests;
    this.interrupted = interrupted;
    this.#log = log;
    this.#batches = new Batches((batch) => thread.postMessage(batch));
    thread.on('message', (answers: readonly LedgerAnswer[]) => this.#batches.take(answers));
  }

  /**
   * Opens the ledger, and says in the log what an earlier life left.
   * @throws SettingsError when only a person can mend it; Error when it may be tried again
   */
  static async open({ stateDir, retainMs }: LedgerSettings, log: Logger): Promise<Ledger> {
    const { key, isNew } = readOrMakeKey(join(stateDir, 'ledger.key'));
    const digests = new Digests(key);
    const thread = new Worker(threadProgram, {
      workerData: { path: join(stateDir, 'ledger.db'), keyCheck: digests.keyCheck, isNew, retainMs },
      env: {},
      resourceLimits: { maxYoungGenerationSizeMb: 8, maxOldGenerationSizeMb: 128 },
    });
    const opening = await new Promise<LedgerOpening>((resolve) => thread.once('message', resolve));
    if (!opening.opened && opening.newer)
      throw new SettingsError(['The ledger in RUNNER_STATE_DIR is of a newer version; it is left as it is.']);
    if (!opening.opened && opening.code === busyCode)
      throw new SettingsError(['RUNNER_STATE_DIR is in use by another service; this one needs a folder of its own.']);
    // Want of room, or a disk that fails: it may pass, so that this is no reason never to be started again.
    if (!opening.opened)
      throw new Error(`The ledger in RUNNER_STATE_DIR cannot be opened (${opening.code}); it is left as it is.`);
    const { interrupted, setAside, missing, primed } = opening;
    if (interrupted.length > 0)
      log.warn({ interrupted: interrupted.length }, 'operations of an earlier life were interrupted');
    if (setAside)
      log.error(
        'the ledger was damaged, or made with another key: it is kept as ledger.db.damaged-…, and a new one begun',
      );
    if (missing) log.error('there is a ledger key, but its ledger is gone: a new one was begun');
    if (!primed)
      log.warn('the disk has no room that the ledger could keep free: when it is full, mutations are refused');
    return new Ledger(thread, digests, interrupted, log);
  }

  /**
   * Puts a mutation down; resolves when it is on record.
   * @throws Refusal `ledger_unavailable`: nothing may be begun
   * @throws ProtocolViolation when its operation id is on record already
   */
  async begin(record: NewRecord): Promise<void> {
    const answer = await this.#ask({ ask: 'begin', record });
    if (answer.came === 'done') return;
    if (answer.came === 'duplicate') throw new ProtocolViolation('an operation id is used again');
    // It will be on record all the same, maybe: then it is told there that nothing was done. What failed never will.
    if (answer.came === 'late') {
      const { operationId } = record;
      const finish = { operationId, finishedAt: Date.now(), outcome: 'ledger_unavailable', exit: null } as const;
      void this.#ask({ ask: 'finish', finish: { ...finish, releaseKey: true } });
    }
    throw new Refusal('ledger_unavailable');
  }

  /** Puts its outcome down; resolves when it is on record or will be tried again. */
  async finish(finish: Finish): Promise<void> {
    await this.#ask({ ask: 'finish', finish });
  }

  /** Finds the operation of a key. @throws Refusal `ledger_unavailable` */
  async byKey(user: number, key: Uint8Array): Promise<LedgerRecord | undefined> {
    return this.#record(await this.#ask({ ask: 'byKey', user, key }));
  }

  /** Finds an operation. @throws Refusal `ledger_unavailable`, also when it can't be known whether there was one */
  async byId(operationId: string): Promise<LedgerRecord | undefined> {
    return this.#record(await this.#ask({ ask: 'byId', operationId }));
  }

  /** Closes it; resolves when all of it is on the disk. The caller bounds the wait. */
  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#thread.once('exit', resolve));
    this.#thread.postMessage('close');
    await closed;
  }

  #record(answer: Came): LedgerRecord | undefined {
    if (answer.came === 'record') return answer.record;
    throw new Refusal('ledger_unavailable');
  }

  async #ask(request: LedgerRequest): Promise<Came> {
    const answer = await this.#batches.ask(request);
    this.#tell(request, answer);
    return answer;
  }

  /** Says once when it begins to fail, and once when it works again. A look-up that works says nothing of that. */
  #tell({ ask }: LedgerRequest, answer: Came): void {
    const failing = answer.came === 'failed' || answer.came === 'late';
    if (failing && !this.#failing) {
      const code = answer.came === 'failed' ? answer.code : 'timeout';
      this.#log.error({ code }, 'the ledger cannot be used; mutations are refused');
      this.#failing = true;
    }
    if (!failing && this.#failing && (ask === 'begin' || ask === 'finish')) {
      this.#log.info('the ledger can be used again');
      this.#failing = false;
    }
  }
}
