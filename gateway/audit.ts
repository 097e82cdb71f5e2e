import { write } from 'node:fs';
import type { Logger } from 'pino';
import { AuditQueue, type AuditRecord, type WriteBytes } from '../protocol/audit.ts';

/** Between two warnings about dropped lines, ms. */
const warningIntervalMs = 10_000;

/** Never `process.stdout`: on a pipe that is synchronous, and a reader that stalls would stop the whole service. */
const writeToStandardOutput: WriteBytes = (bytes, done) => write(1, bytes, done);

/** The gateway's audit: the bounded queue in front of standard output, and a warning when it had to drop lines. */
export class Audit {
  readonly #queue: AuditQueue;
  readonly #log: Logger;
  #gone = false;
  #droppedTold = 0;
  #warnedAt = Number.NEGATIVE_INFINITY;

  /** @param closed called when the reader is gone for good */
  constructor(log: Logger, closed: () => void, writeBytes: WriteBytes = writeToStandardOutput) {
    this.#log = log;
    this.#queue = new AuditQueue(writeBytes, () => {
      this.#gone = true;
      closed();
    });
  }

  /** True while new mutations are to be refused. */
  get full(): boolean {
    return this.#queue.full;
  }

  /** Adds a line. */
  add(record: AuditRecord): void {
    this.#queue.add(record);
    const { dropped } = this.#queue;
    const now = performance.now();
    if (dropped === this.#droppedTold || now - this.#warnedAt < warningIntervalMs) return;
    this.#log.warn({ dropped: dropped - this.#droppedTold }, 'audit lines of refusals were dropped: its reader stalls');
    this.#droppedTold = dropped;
    this.#warnedAt = now;
  }

  /** Resolves when every line has been written or none can be any more; the caller bounds the wait. */
  async flushed(): Promise<void> {
    if (!this.#gone) await this.#queue.flushed();
  }
}
