import { afterEach, beforeEach, expect, test } from 'vitest';
import { bearer, GatewayUnderTest } from './gateway-under-test.ts';
import { RawClient, requestText } from './raw-client.ts';

let gateway: GatewayUnderTest;

beforeEach(async () => {
  gateway = await GatewayUnderTest.start();
});

afterEach(() => gateway.stop());

const good = JSON.stringify({ user: 7, tool: 'git' });
const execText = requestText('POST /v1/exec', { ...bearer, 'Content-Length': String(good.length) }, good);

/** A connection with a request under way, and a quiet one that had its answer. */
const busyGateway = async () => {
  const quiet = await RawClient.connect(gateway.port);
  expect(await quiet.write(requestText('GET /healthz')).status()).toBe(204);
  const busy = await RawClient.connect(gateway.port);
  busy.write(execText);
  const link = await gateway.workerLink();
  return { quiet, busy, link, request: await link.requests.next() };
};

test('what is under way ends; nothing new begins; the health says so', async () => {
  const { quiet, busy, link, request } = await busyGateway();
  const drained = gateway.drain(60_000);
  const health = await quiet.write(requestText('GET /healthz')).answer();
  expect([health.status, health.headers['connection']]).toEqual([503, 'close']);
  await quiet.closed;
  await expect(RawClient.connect(gateway.port)).rejects.toThrow('ECONNREFUSED');
  link.succeed(request.id, 'done');
  const answer = await busy.answer();
  expect([answer.status, answer.headers['connection']]).toEqual([200, 'close']);
  expect(JSON.parse(answer.body)).toMatchObject({ stdout: 'done' });
  await drained;
});

test('a request on a live connection is draining, once it is known to be well-formed', async () => {
  const { quiet, link, request } = await busyGateway();
  const other = await RawClient.connect(gateway.port);
  expect(await other.write(requestText('GET /healthz')).status()).toBe(204);
  const drained = gateway.drain(60_000);
  const answer = await quiet.write(execText).answer();
  expect([answer.status, answer.headers['connection']]).toEqual([503, 'close']);
  expect(JSON.parse(answer.body)).toEqual({ error: 'draining', message: expect.any(String) });
  expect(await gateway.audit.next()).toMatchObject({ action: 'exec', user: 7, status: 'denied', reason: 'draining' });
  const bad = requestText('POST /v1/exec', { ...bearer, 'Content-Length': '2' }, '{}');
  expect(await other.write(bad).status()).toBe(400);
  link.succeed(request.id);
  await drained;
});

test('what does not end in time is uncertain', async () => {
  const { busy, request } = await busyGateway();
  await gateway.drain(0);
  const answer = await busy.answer();
  expect(answer.status).toBe(502);
  expect(JSON.parse(answer.body)).toMatchObject({ error: 'uncertain', operationId: request.operationId });
  expect(await gateway.audit.next()).toMatchObject({ status: 'uncertain', operationId: request.operationId });
  expect(gateway.audit.size).toBe(0);
});

test('a gateway that has nothing to do stops at once', async () => {
  const quiet = await RawClient.connect(gateway.port);
  expect(await quiet.write(requestText('GET /healthz')).status()).toBe(204);
  await gateway.drain(3_600_000);
  quiet.end();
});
