import { describe, expect, it, vi } from 'vitest';
import { ProtocolViolation } from '../../../protocol/msgpack-check.ts';
import type { Operation } from '../../../protocol/operation.ts';
import { mintOperationId } from '../../../protocol/operation-id.ts';
import { Dispatch } from '../../../worker/dispatch.ts';
import type { Handlers } from '../../../worker/handlers.ts';
import { Outputs } from '../../../worker/outputs.ts';
import { collectingAudit, collectingLog } from './support/collect.ts';
import { sharedLedger } from './support/ledger.ts';

/** In place of exec: a read, which has no operation id. */
vi.mock('../../../protocol/operations/index.ts', async () => {
  const { z } = await import('zod');
  const row: Operation = {
    route: '/v1/exec',
    effect: 'read',
    params: z.strictObject({ user: z.int() }),
    result: z.strictObject({ seen: z.int() }),
    streams: [],
    asRoot: '',
    asUser: '',
    audit: 'exec',
    secrets: [],
    errors: [],
    timeLimitMs: () => 1,
  };
  return { operations: { exec: row } };
});

const setup = async (overloaded = false) => {
  const { mutations } = await sharedLedger();
  const { log } = collectingLog();
  const { audit, lines } = collectingAudit();
  const release = Promise.withResolvers<void>();
  const look = vi.fn(async () => {
    await release.promise;
    return { seen: 1 };
  });
  const handlers = { exec: look } as unknown as Handlers;
  const userRange = { first: 0, last: 10 };
  const dispatch = new Dispatch({ handlers, mutations, audit, log, userRange, overloaded: () => overloaded });
  const ask = (operationId?: string) =>
    dispatch.call({
      request: {
        kind: 'request',
        id: 1,
        operation: 'exec',
        params: { user: 1 },
        ...(operationId === undefined ? {} : { operationId }),
      },
      signal: new AbortController().signal,
      outputs: new Outputs({ credit: () => 0, send: () => undefined }, []),
    });
  return { ask, look, lines, release };
};

describe('an operation that only reads', () => {
  it('must not name an operation', async () => {
    const { ask, look } = await setup();
    await expect(ask(mintOperationId())).rejects.toThrow(ProtocolViolation);
    expect(look).not.toHaveBeenCalled();
  });

  it('goes on while no new mutation is taken in, and its audit line names no operation', async () => {
    const { ask, lines, release } = await setup(true);
    release.resolve();
    expect(await ask()).toStrictEqual({ ok: true, result: { seen: 1 }, streams: {} });
    expect(lines()).toHaveLength(1);
    expect(lines()[0]).not.toHaveProperty('operationId');
  });

  it('does not stand in the way of another one', async () => {
    const { ask, look, release } = await setup();
    const both = [ask(), ask()];
    await Promise.race([...both, new Promise(setImmediate)]);
    release.resolve();
    expect((await Promise.all(both)).map(({ ok }) => ok)).toStrictEqual([true, true]);
    expect(look).toHaveBeenCalledTimes(2);
  });
});
