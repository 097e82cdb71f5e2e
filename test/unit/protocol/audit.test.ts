import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { AuditQueue, type AuditRecord, type AuditStatus, auditStatusOf } from '../../../protocol/audit.ts';
import { type ErrorCode, errorCodes } from '../../../protocol/errors.ts';
import { auditQueueBytesMax } from '../../../protocol/limits.ts';
import { Random } from './support/random.ts';

type Done = (error: Error | null, written: number) => void;

/** A reader that takes bytes only when the test says so. */
class Reader {
  readonly writes: Buffer[] = [];
  readonly taken: Buffer[] = [];
  readonly closed: Error[] = [];
  readonly told: number[] = [];
  readonly queue: AuditQueue;
  #pending: { bytes: Buffer; done: Done } | undefined;

  constructor() {
    this.queue = new AuditQueue(
      (bytes, done) => {
        if (this.#pending) throw new Error('a write began while another was under way');
        this.writes.push(Buffer.from(bytes));
        this.#pending = { bytes: Buffer.from(bytes), done };
      },
      (error) => this.closed.push(error),
      (count) => this.told.push(count),
    );
  }

  get waiting(): number {
    return this.#pending?.bytes.length ?? 0;
  }

  take(count: number): void {
    const { bytes, done } = this.#next();
    this.taken.push(bytes.subarray(0, count));
    done(null, Math.min(count, bytes.length));
  }

  fail(code: string): void {
    this.#next().done(Object.assign(new Error(code), { code }), 0);
  }

  all(): void {
    while (this.waiting > 0) this.take(this.waiting);
  }

  records(): AuditRecord[] {
    const text = Buffer.concat(this.taken).toString();
    expect(text === '' || text.endsWith('\n')).toBe(true);
    return text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line));
  }

  #next(): { bytes: Buffer; done: Done } {
    const pending = this.#pending;
    if (!pending) throw new Error('nothing is being written');
    this.#pending = undefined;
    return pending;
  }
}

const record = (user: number, more: Partial<AuditRecord> = {}): AuditRecord => ({
  action: 'exec',
  user,
  ms: 1,
  status: 'ok',
  ...more,
});
/** Adds records until the queue is full; says how many there were. */
const fill = (queue: AuditQueue): number => {
  let count = 0;
  for (; !queue.full; count += 1) queue.add(record(count));
  return count;
};

describe('the audit queue', () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: Date.UTC(2026, 0, 2, 3, 4, 5, 6) });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('writes one JSON line per record, the time first', () => {
    const reader = new Reader();
    const { queue } = reader;
    queue.add(record(7, { tool: 'git', args: 2, exit: 0, operationId: 'x' }));
    reader.all();
    expect(Buffer.concat(reader.taken).toString()).toBe(
      '{"time":"2026-01-02T03:04:05.006Z","action":"exec","user":7,"ms":1,"status":"ok","tool":"git","args":2,"exit":0,"operationId":"x"}\n',
    );
  });

  it('keeps the order, whatever part of a batch the reader takes at a time', () => {
    const random = new Random(5);
    const reader = new Reader();
    for (let user = 0; user < 1000; user += 1) {
      reader.queue.add(record(user));
      if (reader.waiting > 0 && random.below(3) === 0) reader.take(1 + random.below(300));
    }
    while (reader.waiting > 0) reader.take(1 + random.below(5000));
    expect(reader.records().map(({ user }) => user)).toStrictEqual(Array.from({ length: 1000 }, (_, user) => user));
    expect(reader.queue.full).toBe(false);
  });

  it('puts whole lines into batches of at most 4,096 bytes, as many as fit', () => {
    const reader = new Reader();
    for (let user = 0; user < 500; user += 1) reader.queue.add(record(user));
    reader.all();
    const [first, ...rest] = reader.writes;
    expect(first?.toString().split('\n')).toHaveLength(2);
    expect(rest.length).toBeGreaterThan(3);
    for (const batch of rest) {
      expect(batch.length).toBeLessThanOrEqual(4096);
      expect(batch.at(-1)).toBe(0x0a);
    }
    for (const batch of rest.slice(0, -1)) expect(batch.length).toBeGreaterThan(4096 - 100);
    expect(reader.records()).toHaveLength(500);
  });

  it('writes a line that is longer than a batch alone and whole', () => {
    const reader = new Reader();
    const tool = 'x'.repeat(5000);
    for (const user of [1, 2]) reader.queue.add(record(user));
    reader.queue.add(record(3, { tool }));
    for (const user of [4, 5]) reader.queue.add(record(user));
    reader.all();
    expect(reader.writes.map((batch) => batch.toString().split('\n').length - 1)).toStrictEqual([1, 1, 1, 2]);
    expect(reader.writes[2]?.length).toBeGreaterThan(5000);
    expect(reader.records().map(({ user }) => user)).toStrictEqual([1, 2, 3, 4, 5]);
  });

  it('writes a batch of exactly 4,096 bytes', () => {
    const reader = new Reader();
    reader.queue.add(record(0));
    const line = reader.writes[0]?.length ?? 0;
    const tool = (bytes: number): string => 'x'.repeat(bytes - line - ',"tool":""'.length);
    reader.queue.add(record(1, { tool: tool(2048) }));
    reader.queue.add(record(2, { tool: tool(2048) }));
    reader.queue.add(record(3, { tool: tool(2048) }));
    reader.queue.add(record(4, { tool: tool(2049) }));
    reader.all();
    expect(reader.writes.map(({ length }) => length)).toStrictEqual([line, 4096, 2048, 2049]);
  });

  it('goes on with the rest after a write that took only a part', () => {
    const reader = new Reader();
    reader.queue.add(record(1));
    const line = reader.writes[0] as Buffer;
    reader.take(10);
    expect(reader.writes[1]).toStrictEqual(line.subarray(10));
    reader.all();
    expect(reader.records()).toHaveLength(1);
  });

  it('tries again later, and not at once, when the pipe is full and non-blocking', () => {
    const reader = new Reader();
    reader.queue.add(record(1));
    reader.queue.add(record(2));
    reader.fail('EAGAIN');
    expect(reader.waiting).toBe(0);
    vi.runOnlyPendingTimers();
    expect(reader.waiting).toBeGreaterThan(0);
    reader.fail('EAGAIN');
    vi.runOnlyPendingTimers();
    reader.all();
    expect(reader.records().map(({ user }) => user)).toStrictEqual([1, 2]);
    expect(reader.closed).toStrictEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it.each(['EPIPE', 'EIO', 'EBADF'])('says once that the reader is gone for good on %s', (code) => {
    const reader = new Reader();
    reader.queue.add(record(1));
    reader.fail(code);
    reader.queue.add(record(2));
    vi.runAllTimers();
    expect(reader.closed).toMatchObject([{ code }]);
    expect(reader.writes).toHaveLength(1);
  });

  it('is full at 1 MiB, and has room again when the reader has taken enough', () => {
    expect(auditQueueBytesMax).toBe(1024 * 1024);
    const reader = new Reader();
    reader.queue.add(record(0));
    const count = Math.floor(auditQueueBytesMax / (reader.writes[0]?.length ?? 1));
    expect(reader.queue.full).toBe(false);
    const added = fill(reader.queue);
    expect(added).toBeGreaterThan(count * 0.9);
    reader.take(1);
    reader.take(reader.waiting);
    expect(reader.queue.full).toBe(false);
  });

  it.each<AuditStatus>(['denied', 'busy'])('counts and drops %s while it is full, and only then', (status) => {
    const reader = new Reader();
    reader.queue.add(record(1_000_000, { status }));
    const added = fill(reader.queue);
    for (let count = 0; count < 5; count += 1) reader.queue.add(record(2_000_000, { status }));
    expect(reader.queue.dropped).toBe(5);
    reader.all();
    reader.queue.add(record(3_000_000, { status }));
    reader.all();
    const users = reader.records().map(({ user }) => user);
    expect(users).toHaveLength(added + 2);
    expect(users).not.toContain(2_000_000);
    expect([users.at(0), users.at(-1)]).toStrictEqual([1_000_000, 3_000_000]);
    expect(reader.queue.dropped).toBe(5);
  });

  it.each<AuditStatus>(['ok', 'timeout', 'error', 'uncertain'])('still takes %s while it is full', (status) => {
    const reader = new Reader();
    const added = fill(reader.queue);
    reader.queue.add(record(2_000_000, { status }));
    reader.all();
    expect(reader.queue.dropped).toBe(0);
    expect(reader.records()).toHaveLength(added + 1);
    expect(reader.records().at(-1)).toMatchObject({ user: 2_000_000, status });
  });

  it('grows no further under a flood of refusals that nobody reads', () => {
    const reader = new Reader();
    for (let count = 0; count < 50_000; count += 1) reader.queue.add(record(count, { status: 'denied' }));
    expect(reader.queue.full).toBe(true);
    reader.all();
    const bytes = Buffer.concat(reader.taken).length;
    expect(bytes).toBeGreaterThanOrEqual(auditQueueBytesMax);
    expect(bytes).toBeLessThan(auditQueueBytesMax + 200);
    expect(reader.records().length + reader.queue.dropped).toBe(50_000);
  });

  it('is flushed when all lines are out, at once if there are none', async () => {
    const reader = new Reader();
    await reader.queue.flushed();
    const order: string[] = [];
    reader.queue.add(record(1));
    reader.queue.add(record(2));
    const both = [1, 2].map((name) => reader.queue.flushed().then(() => order.push(`flushed ${name}`)));
    reader.take(reader.waiting);
    await Promise.resolve();
    expect(order).toStrictEqual([]);
    order.push('last');
    reader.take(reader.waiting);
    await Promise.all(both);
    expect(order).toStrictEqual(['last', 'flushed 1', 'flushed 2']);
    await reader.queue.flushed();
    reader.queue.add(record(3));
    expect(reader.waiting).toBeGreaterThan(0);
  });
});

describe('the status that a refusal is audited with', () => {
  const others: Partial<Record<ErrorCode, AuditStatus>> = {
    busy: 'busy',
    uncertain: 'uncertain',
    exec_failed: 'error',
    limit_failed: 'error',
    kill_incomplete: 'error',
    workspace_broken: 'error',
    file_failed: 'error',
    write_failed: 'error',
    reset_failed: 'error',
    usage_failed: 'error',
    internal: 'error',
    ledger_unavailable: 'error',
    worker_unavailable: 'error',
  };
  it.each(errorCodes)('%s', (code) => {
    expect(auditStatusOf(code)).toBe(others[code] ?? 'denied');
  });
});

describe('a queue that is full', () => {
  const fill = (reader: Reader): void => {
    while (!reader.queue.full) reader.queue.add({ action: 'exec', ms: 1, status: 'ok' });
  };

  it('drops what is about no work, whatever its status, and tells so once', () => {
    const reader = new Reader();
    fill(reader);
    reader.queue.add({ action: 'link.lost', ms: 1, status: 'error', reason: 'closed' });
    reader.queue.add({ action: 'exec', ms: 1, status: 'error', reason: 'worker_unavailable' });
    expect(reader.queue.dropped).toBe(2);
    expect(reader.told).toStrictEqual([1]);
  });

  it('takes in nothing at all at twice its size', () => {
    const reader = new Reader();
    for (let line = 0; line < 60_000; line += 1) reader.queue.add({ action: 'exec', ms: 1, status: 'ok' });
    expect(reader.queue.dropped).toBeGreaterThan(0);
    reader.all();
    expect(Buffer.concat(reader.taken).length).toBeLessThan(2 * auditQueueBytesMax + 4096);
  });
});
