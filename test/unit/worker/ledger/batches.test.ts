import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ledgerTimeoutMs } from '../../../../protocol/limits.ts';
import { mintOperationId } from '../../../../protocol/operation-id.ts';
import { Batches } from '../../../../worker/ledger/batches.ts';
import type { LedgerRequest } from '../../../../worker/ledger/record.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const look = (): LedgerRequest => ({ ask: 'byId', operationId: mintOperationId() });
const begin = (): LedgerRequest => ({
  ask: 'begin',
  record: {
    operationId: mintOperationId(),
    user: 7,
    operation: 'exec',
    digest: Buffer.alloc(32),
    key: null,
    startedAt: 1,
  },
});
const finish = (): LedgerRequest => ({
  ask: 'finish',
  finish: { operationId: mintOperationId(), finishedAt: 2, outcome: 'ok', exit: 0, releaseKey: false },
});

/** A thread that has what it was given and says nothing. */
const standingStill = () => {
  const given: (readonly LedgerRequest[])[] = [];
  return { given, batches: new Batches((batch) => given.push(batch)) };
};

describe('a disk that stands still', () => {
  it('holds nothing that nobody waits for: what was not handed over is taken back, outcomes are not', async () => {
    const { given, batches } = standingStill();
    const first = batches.ask(begin());
    const outcome = finish();
    const late = batches.ask(outcome);
    for (let round = 0; round < 100; round += 1) {
      const asked = [batches.ask(look()), batches.ask(begin())];
      await vi.advanceTimersByTimeAsync(ledgerTimeoutMs);
      for (const answer of asked) expect(await answer).toEqual({ came: 'failed', code: 'timeout' });
    }
    expect(await first, 'the thread has it and may do it yet').toEqual({ came: 'late' });
    expect(await late).toEqual({ came: 'late' });
    batches.take([{ came: 'done' }]);
    expect(given.map((batch) => batch.length)).toEqual([1, 1]);
    expect(given[1]).toEqual([outcome]);
  });

  it('goes on in order when it moves again', async () => {
    const { given, batches } = standingStill();
    const asked = [begin(), look(), finish()].map((request) => ({ request, answer: batches.ask(request) }));
    batches.take([{ came: 'done' }]);
    batches.take([{ came: 'record', record: undefined }, { came: 'done' }]);
    expect(await Promise.all(asked.map(({ answer }) => answer))).toEqual([
      { came: 'done' },
      { came: 'record', record: undefined },
      { came: 'done' },
    ]);
    expect(given.flat()).toEqual(asked.map(({ request }) => request));
    expect(vi.getTimerCount()).toBe(0);
  });
});
