import type { ErrorCode } from './errors.ts';
import { auditQueueBytesMax } from './limits.ts';

/** What an audit line can be about. */
export type AuditAction =
  | 'exec'
  | 'repo.clone'
  | 'repo.worktree'
  | 'repo.push'
  | 'repo.agent_worktree'
  | 'repo.agent_push'
  | 'files.list'
  | 'files.read'
  | 'files.write'
  | 'files.delete'
  | 'process.start'
  | 'process.status'
  | 'process.read'
  | 'process.write'
  | 'process.resize'
  | 'process.terminate'
  | 'process.list'
  | 'process.stream'
  | 'process.exit'
  | 'usage'
  | 'workspace.reset'
  | 'operation.status'
  | 'auth.denied'
  | 'link.lost'
  | 'worker.started';

/** How it came out. `denied`: refused before any effect; `uncertain`: see the specification's 30. */
export type AuditStatus = 'ok' | 'denied' | 'timeout' | 'error' | 'busy' | 'uncertain';

/** Why a link was given up: a message that breaks the protocol, nothing heard for too long, or the socket itself. */
export type LinkLoss = 'protocol' | 'silence' | 'closed';

/** Why the worker ended a run that the gateway no longer waits for. */
export type StopReason = 'link_lost' | 'cancelled' | 'draining';

/**
 * One audit line: numbers, fixed words and ids only. No argument, environment, output, token, name or path
 * can be put here, because there is no field for one (`tool` is a name of the operator's allowlist).
 * Source: specification, Operations, "Audit".
 */
export interface AuditRecord {
  readonly action: AuditAction;
  readonly user?: number;
  readonly tool?: string;
  /** How many arguments the caller gave. */
  readonly args?: number;
  readonly exit?: number;
  readonly ms: number;
  readonly status: AuditStatus;
  /** `replayed`: an answer given again under its Idempotency-Key; nothing was done. */
  readonly reason?: ErrorCode | LinkLoss | StopReason | 'replayed';
  readonly operationId?: string;
}

/** The status that a refusal is audited with. */
export const auditStatusOf = (code: ErrorCode): AuditStatus => {
  switch (code) {
    case 'busy':
      return 'busy';
    case 'uncertain':
      return 'uncertain';
    case 'exec_failed':
    case 'limit_failed':
    case 'kill_incomplete':
    case 'workspace_broken':
    case 'file_failed':
    case 'write_failed':
    case 'reset_failed':
    case 'usage_failed':
    case 'internal':
    case 'worker_unavailable':
    case 'ledger_unavailable':
      return 'error';
    default:
      return 'denied';
  }
};

/** Writes bytes and says how many of them went out; a plain fs.write. */
export type WriteBytes = (bytes: Uint8Array, done: (error: Error | null, written: number) => void) => void;

const isAboutNoEffect: ReadonlySet<AuditRecord['reason']> = new Set([
  'worker_unavailable',
  'ledger_unavailable',
  'replayed',
]);

/**
 * True for lines about what did no work: no effect began, so that their number is the callers' alone to choose,
 * or the peer's, who can lose a link as often as it likes.
 */
const isAboutNoWork = ({ action, status, reason }: AuditRecord): boolean =>
  action === 'link.lost' || status === 'denied' || status === 'busy' || isAboutNoEffect.has(reason);

/** No line at all is taken in at this, bytes: whatever was misjudged above, memory has an end. */
const hardBytesMax = 2 * auditQueueBytesMax;

/** Between two words about dropped lines, ms. */
const droppedIntervalMs = 10_000;

/** Longest batch of lines in one write, bytes: PIPE_BUF, so that the lines of two processes never mix (pipe(7)). */
const atomicWriteBytes = 4096;

/**
 * The bounded queue between the service and whoever reads the audit. It never waits for the reader: at
 * `auditQueueBytesMax` it is full, and the caller refuses new mutations until there is room again.
 */
export class AuditQueue {
  readonly #write: WriteBytes;
  readonly #closed: (error: Error) => void;
  readonly #tellDropped: (count: number) => void;
  readonly #lines: Buffer[] = [];
  #bytes = 0;
  #dropped = 0;
  #droppedTold = 0;
  #toldAt = Number.NEGATIVE_INFINITY;
  #writing = false;
  #broken = false;
  #idle: (() => void)[] = [];

  /**
   * @param closed told when the reader is gone for good: a service that can't be audited stops
   * @param dropped told how many lines found no room since it was told last, at most every 10 s
   */
  constructor(write: WriteBytes, closed: (error: Error) => void, dropped: (count: number) => void) {
    this.#write = write;
    this.#closed = closed;
    this.#tellDropped = dropped;
  }

  /** True while there is no room for what new work would have to say. */
  get full(): boolean {
    return this.#bytes >= auditQueueBytesMax;
  }

  /** Lines that found no room, so far. */
  get dropped(): number {
    return this.#dropped;
  }

  /**
   * Adds a line. Work that was let in finds room (its number is bounded); refusals and lost links that come
   * while the queue is full are counted and dropped, so that a flood of them can't eat memory.
   */
  add(record: AuditRecord): void {
    if (this.#broken) return;
    const droppable = isAboutNoWork(record) || this.#bytes >= hardBytesMax;
    if (this.full && droppable) {
      this.#dropped += 1;
    } else this.#queue(record);
    const now = performance.now();
    const untold = this.#dropped - this.#droppedTold;
    if (untold === 0 || now - this.#toldAt < droppedIntervalMs) return;
    this.#toldAt = now;
    this.#droppedTold = this.#dropped;
    this.#tellDropped(untold);
  }

  /** Resolves when all lines have been written, or can't be any more; the caller bounds the wait. */
  async flushed(): Promise<void> {
    if (!this.#writing) return;
    await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #queue(record: AuditRecord): void {
    const line = Buffer.from(`${JSON.stringify({ time: new Date().toISOString(), ...record })}\n`);
    this.#lines.push(line);
    this.#bytes += line.length;
    if (!this.#writing) this.#next();
  }

  #next(): void {
    const batch: Buffer[] = [];
    let size = 0;
    for (const line of this.#lines) {
      if (size > 0 && size + line.length > atomicWriteBytes) break;
      batch.push(line);
      size += line.length;
    }
    if (size === 0) {
      this.#settle();
      return;
    }
    this.#writing = true;
    this.#lines.splice(0, batch.length);
    this.#send(Buffer.concat(batch, size));
  }

  #settle(): void {
    this.#writing = false;
    for (const resolve of this.#idle.splice(0)) resolve();
  }

  #send(bytes: Buffer): void {
    this.#write(bytes, (error, written) => {
      if (error && (error as NodeJS.ErrnoException).code === 'EAGAIN') {
        // Somebody made the shared description non-blocking; there is no event for it here, so look again soon.
        setTimeout(() => this.#send(bytes), 10);
        return;
      }
      if (error) {
        this.#broken = true;
        this.#settle();
        this.#closed(error);
        return;
      }
      this.#bytes -= written;
      if (written < bytes.length) this.#send(bytes.subarray(written));
      else this.#next();
    });
  }
}
