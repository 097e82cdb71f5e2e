import { expect, it } from 'vitest';
import { Refusal } from '../../../protocol/errors.ts';
import { mintOperationId } from '../../../protocol/operation-id.ts';
import { operationStatusHandler } from '../../../worker/operations/operation-status.ts';
import { openLedger } from './support/ledger.ts';

const request = () => ({
  operationId: mintOperationId(),
  operation: 'exec',
  user: 7,
  params: {},
  idempotencyKey: 'k',
  cameAt: 1_000,
});

const setup = async () => {
  const parts = await openLedger();
  const ask = operationStatusHandler(parts);
  return { ...parts, ask };
};

it('one that came in and has not begun is running, not unknown', async () => {
  const { mutations, ask } = await setup();
  const release = Promise.withResolvers<void>();
  const asked = request();
  const carried = mutations.enter(
    asked,
    () => release.promise,
    async () => undefined,
  );
  const { operationId } = asked;
  const running = { operationId, kind: 'exec', action: 'exec', state: 'running', outcome: null, httpStatus: null };
  expect(await ask({ operationId })).toMatchObject(running);
  expect(await ask({ user: 7, idempotencyKey: 'k' })).toMatchObject(running);
  await expect(ask({ user: 8, idempotencyKey: 'k' })).rejects.toBeInstanceOf(Refusal);
  release.resolve();
  await carried;
  await expect(ask({ operationId })).rejects.toMatchObject({ code: 'operation_not_found' });
});

it('an answer that is too large for a frame is left out, the rest is told', async () => {
  const { mutations, ask } = await setup();
  const asked = request();
  // Each of these becomes a U+FFFD, three bytes.
  const stdout = Buffer.alloc(1_000_000, 0xff);
  await mutations.enter(
    asked,
    async (mutation) => {
      await mutation.begin();
      await mutation.finish({
        outcome: { ok: true, result: { exitCode: 0 }, streams: { stdout: { bytes: stdout.length, cut: false } } },
        timedOut: false,
        stopped: undefined,
        exit: 0,
        streams: new Map([['stdout', stdout]]),
      });
    },
    async () => undefined,
  );
  const status = await ask({ operationId: asked.operationId });
  expect(status).toMatchObject({ state: 'finished', outcome: 'ok', exitCode: 0 });
  expect(status).not.toHaveProperty('result');
});
