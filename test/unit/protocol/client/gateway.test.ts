import { afterEach, expect, test } from 'vitest';
import { createClient } from '../../../../protocol/client.ts';
import { GatewayUnderTest, type Overrides, token } from '../../gateway/gateway-under-test.ts';
import { key, request, result } from './support/answering-server.ts';

let gateway: GatewayUnderTest;

afterEach(() => gateway.stop());

const start = async (overrides: Overrides = {}, parts: { token?: string } = {}) => {
  gateway = await GatewayUnderTest.start(overrides);
  return createClient({ address: gateway.url, token, fetch: globalThis.fetch, answerMs: 20_000, ...parts });
};

test('a real gateway is understood when it is done', async () => {
  const client = await start();
  gateway.worker.onRequest = (link, { id }) => link.succeed(id, 'out', '');
  expect(await client.call('exec', request, key)).toMatchObject({ kind: 'done', result, replayed: false });
});

test('and when it refuses, before the body or after', async () => {
  const client = await start({ bodyBytesMax: 4096 }, { token: 'another' });
  const failed = (code: string) => ({ kind: 'failed', code });
  const large = { ...request, args: ['x'.repeat(1_000_000)] };
  expect(await client.call('exec', request, key)).toMatchObject(failed('unauthenticated'));
  expect(await client.call('exec', large, key)).toMatchObject(failed('unauthenticated'));
  const known = createClient({ address: gateway.url, token, fetch: globalThis.fetch, answerMs: 20_000 });
  expect(await known.call('exec', large, key)).toMatchObject(failed('body_too_large'));
  expect(await known.call('exec', { ...request, user: -1 }, key)).toMatchObject(failed('bad_request'));
});

test('and when the worker is lost after it got the request: uncertain, with the id that it was given', async () => {
  const client = await start();
  const outcome = client.call('exec', request, key);
  const link = await gateway.workerLink();
  const { operationId } = await link.requests.next();
  link.socket.destroy();
  expect(await outcome).toMatchObject({ kind: 'uncertain', why: 'told', code: 'uncertain', operationId, user: 7 });
});

test('and when the worker can’t end a run', async () => {
  const client = await start();
  gateway.worker.onRequest = (link, { id }) => link.connection.reply(id, { ok: false, error: 'kill_incomplete' });
  expect(await client.call('exec', request, key)).toMatchObject({ kind: 'incomplete', code: 'kill_incomplete' });
});
