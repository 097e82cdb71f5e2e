import { describe, expect, it, vi } from 'vitest';
import { ProtocolViolation } from '../../../protocol/msgpack-check.ts';
import { mintOperationId } from '../../../protocol/operation-id.ts';
import type { Result } from '../../../protocol/operations/index.ts';
import { Dispatch } from '../../../worker/dispatch.ts';
import { Outputs } from '../../../worker/outputs.ts';
import { collectingAudit, collectingLog } from './support/collect.ts';
import { handlersWith } from './support/handlers.ts';
import { ledgerOfThisFile } from './support/ledger.ts';

const seen: Result<'usage'> = {
  user: 1,
  bytes: 15,
  files: 3,
  dirs: 0,
  links: 1,
  truncated: false,
  limitBytes: 0,
  over: false,
  top: [],
  groups: [],
  groupsTruncated: false,
};

const sharedLedger = ledgerOfThisFile();

const setup = async (overloaded = false) => {
  const { mutations } = sharedLedger();
  const { log } = collectingLog();
  const { audit, lines } = collectingAudit();
  const release = Promise.withResolvers<void>();
  const look = vi.fn(async () => {
    await release.promise;
    return seen;
  });
  const handlers = handlersWith({ usage: look });
  const userRange = { first: 0, last: 10 };
  const dispatch = new Dispatch({ handlers, mutations, audit, log, userRange, overloaded: () => overloaded });
  const ask = (operationId?: string) =>
    dispatch.call({
      request: {
        kind: 'request',
        id: 1,
        operation: 'usage',
        params: { user: 1 },
        ...(operationId === undefined ? {} : { operationId }),
      },
      signal: new AbortController().signal,
      outputs: new Outputs({ credit: () => 0, send: () => undefined }, []),
      room: async () => undefined,
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
    expect(await ask()).toStrictEqual({ ok: true, result: seen, streams: {} });
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
