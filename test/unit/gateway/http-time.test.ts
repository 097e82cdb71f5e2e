import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { bearer, GatewayUnderTest } from './gateway-under-test.ts';
import { RawClient, requestText } from './raw-client.ts';

// On a busy machine large answers take their time.
vi.setConfig({ testTimeout: 30_000 });

let gateway: GatewayUnderTest;

beforeEach(async () => {
  gateway = await GatewayUnderTest.start({
    timeouts: { headersMs: 1_000, requestMs: 2_000, keepAliveMs: 65_000, checkMs: 20 },
    stallMs: 300,
  });
});

afterEach(() => gateway.stop());

const good = JSON.stringify({ user: 7, tool: 'git' });
const execText = requestText('POST /v1/exec', { ...bearer, 'Content-Length': String(good.length) }, good);

test.each([
  ['a head that never comes', ''],
  ['a head that is never whole', 'POST /v1/exec HTTP/1.1\r\nHost: x\r\n'],
  ['a body that never comes', requestText('POST /v1/exec', { ...bearer, 'Content-Length': '10' }, '{')],
])('%s is request_timeout', async (_name, text) => {
  const client = await RawClient.connect(gateway.port);
  const answer = await client.write(text).answer();
  expect(answer.status).toBe(408);
  expect(JSON.parse(answer.body)).toMatchObject({ error: 'request_timeout' });
  await client.closed;
});

test('an upload that goes on after its 401 ends with the request limit', async () => {
  const client = await RawClient.connect(gateway.port);
  client.write(requestText('POST /v1/exec', { 'Content-Length': '100000' }, 'x'));
  expect(await client.status()).toBe(401);
  await client.closed;
});

test('an answer that nobody reads is given up', async () => {
  const { promise: arrived, resolve } = Promise.withResolvers<void>();
  gateway.worker.onRequest = (link, { id }) => {
    link.succeed(id, 'x'.repeat(250_000));
    resolve();
  };
  const client = await RawClient.connect(gateway.port);
  client.socket.pause();
  for (let round = 0; round < 100; round += 1) client.write(execText);
  await arrived;
  await gateway.connections.idle();
  client.socket.resume();
  await client.closed;
  expect(gateway.audit.size).toBe(0);
});

test('an answer that nobody reads is given up, when it waited for its turn', async () => {
  const requests = 100;
  const { promise: allArrived, resolve } = Promise.withResolvers<void>();
  gateway.worker.onRequest = (link, { id }) => {
    // The first, small one comes last: only then is the way free for the others.
    if (id > 1) link.succeed(id, 'x'.repeat(250_000));
    if (id < requests) return;
    link.succeed(1);
    resolve();
  };
  const client = await RawClient.connect(gateway.port);
  client.socket.pause();
  // Pipelined, so that together they are more than the kernel takes for a client that does not read.
  client.write(execText.repeat(requests));
  await allArrived;
  expect(gateway.audit.size).toBe(0);
  await gateway.connections.idle();
  client.socket.resume();
  await client.closed;
  expect((await fetch(`${gateway.url}/healthz`)).status).toBe(204);
});

test('a run may take longer than any of these limits', async () => {
  const answered = gateway.post('/v1/exec', good);
  const link = await gateway.workerLink();
  const { id } = await link.requests.next();
  // Another client is given up meanwhile, so more time than the request limit has passed.
  const slow = await RawClient.connect(gateway.port);
  expect(await slow.write(requestText('POST /v1/exec', { ...bearer, 'Content-Length': '10' })).status()).toBe(408);
  link.succeed(id);
  expect((await answered).status).toBe(200);
});
