import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { eventBytesMax, eventCreditBytes } from '../../../protocol/limits.ts';
import { execResult, type FakeLink } from './fake-worker.ts';
import { GatewayUnderTest } from './gateway-under-test.ts';

// On a busy machine reconnecting takes its time.
vi.setConfig({ testTimeout: 30_000 });

let gateway: GatewayUnderTest;
const outputBytesMax = 600_000;

beforeEach(async () => {
  gateway = await GatewayUnderTest.start({ outputBytesMax });
});

afterEach(() => gateway.stop());

const good = { user: 7, tool: 'git' };

/** Sends a request and returns it with the worker's end of it. */
const underWay = async (on: GatewayUnderTest = gateway) => {
  const answered = on.post('/v1/exec', good);
  const link = await on.workerLink();
  return { answered, link, request: await link.requests.next() };
};

const expectUncertain = async (answered: Promise<Response>, reason: string): Promise<void> => {
  const response = await answered;
  const operationId = response.headers.get('operation-id');
  expect(response.status).toBe(502);
  expect(await response.json()).toEqual({ error: 'uncertain', message: expect.any(String), operationId });
  expect(await gateway.audit.next()).toMatchObject({ action: 'link.lost', status: 'error', reason });
  expect(await gateway.audit.next()).toEqual({
    time: expect.any(String),
    action: 'exec',
    user: 7,
    ms: expect.any(Number),
    status: 'uncertain',
    reason: 'uncertain',
    operationId,
  });
};

const expectServed = async (): Promise<void> => {
  gateway.worker.onRequest = (link, { id }) => link.succeed(id, 'served');
  await gateway.link.whenReady();
  expect(await (await gateway.post('/v1/exec', good)).json()).toMatchObject({ stdout: 'served' });
};

describe('without a worker', () => {
  test('a mutation is worker_unavailable, without an id, and the health says so', async () => {
    const alone = await GatewayUnderTest.start({ worker: false });
    const response = await alone.post('/v1/exec', good);
    expect(response.status).toBe(503);
    expect(response.headers.get('operation-id')).toBeNull();
    expect(await response.json()).toEqual({ error: 'worker_unavailable', message: expect.any(String) });
    expect(await alone.audit.next()).toMatchObject({
      action: 'exec',
      user: 7,
      status: 'error',
      reason: 'worker_unavailable',
    });
    const health = await fetch(`${alone.url}/healthz`);
    expect([health.status, await health.text()]).toEqual([503, '']);
    expect(alone.audit.size).toBe(0);
    await alone.stop();
  });

  test('a bad request is still bad_request', async () => {
    const alone = await GatewayUnderTest.start({ worker: false });
    expect((await alone.post('/v1/exec', { user: 'x' })).status).toBe(400);
    await alone.stop();
  });

  test('one that comes later is found', async () => {
    const alone = await GatewayUnderTest.start({ worker: false });
    await alone.worker.listen();
    await alone.link.whenReady();
    alone.worker.onRequest = (link, { id }) => link.succeed(id);
    expect((await alone.post('/v1/exec', good)).status).toBe(200);
    await alone.stop();
  });

  test('one that refuses the connection is tried again', async () => {
    const link = await gateway.workerLink();
    await gateway.worker.close();
    await gateway.worker.listen();
    const second = await gateway.workerLink();
    expect(second).not.toBe(link);
    second.socket.destroy();
    await gateway.workerLink();
    await expectServed();
  });
});

describe('a mutation under way is uncertain, and is not sent again', () => {
  test('when the worker closes the link', async () => {
    const { answered, link } = await underWay();
    link.socket.destroy();
    await expectUncertain(answered, 'closed');
    const next = await gateway.workerLink();
    expect(next.requests.size).toBe(0);
    await expectServed();
  });

  test('when the worker only ends its side', async () => {
    const { answered, link } = await underWay();
    link.socket.end();
    await expectUncertain(answered, 'closed');
  });

  test('when the worker falls silent', async () => {
    await gateway.stop();
    let jump = 0;
    gateway = await GatewayUnderTest.start({ clock: () => performance.now() + jump });
    const { answered } = await underWay();
    jump = 60_000;
    await expectUncertain(answered, 'silence');
  });

  test('when its deadline passes; then it is cancelled, and its late reply does no harm', async () => {
    await gateway.stop();
    let deadlineMs = 50;
    gateway = await GatewayUnderTest.start({ deadlineOf: () => deadlineMs });
    const { answered, link, request } = await underWay();
    const response = await answered;
    expect(response.status).toBe(502);
    expect(await response.json()).toMatchObject({ error: 'uncertain', operationId: request.operationId });
    expect(await gateway.audit.next()).toMatchObject({
      action: 'exec',
      status: 'uncertain',
      operationId: request.operationId,
    });
    expect(await link.cancels.next()).toBe(request.id);
    link.succeed(request.id, 'late');
    deadlineMs = 60_000;
    await expectServed();
    expect(gateway.audit.size).toBe(0);
  });

  test('and an abandoned one still gets credit, so that its reply can come', async () => {
    await gateway.stop();
    gateway = await GatewayUnderTest.start({ deadlineOf: () => 50, outputBytesMax });
    const { answered, link, request } = await underWay();
    await answered;
    for (let sent = 0; sent < eventCreditBytes / 2; sent += eventBytesMax)
      link.connection.event(request.id, 'stdout', new Uint8Array(eventBytesMax));
    expect(await link.credits.next()).toBe(eventCreditBytes);
  });
});

describe('a worker that breaks the protocol loses the link', () => {
  const stream = { bytes: 0, cut: false };
  const reply = (id: number, outcome: object) => ({ kind: 'reply', id, outcome });
  const ok = (streams: object) => ({ ok: true, result: execResult, streams });

  test.each<[string, (link: FakeLink, id: number) => void | Promise<void>]>([
    ['a reply of an unknown id', (link, id) => link.say(reply(id + 1, ok({ stdout: stream, stderr: stream })))],
    [
      'an event of an unknown id',
      (link, id) => link.say({ kind: 'event', id: id + 1, stream: 'stdout', data: Buffer.of(1) }),
    ],
    [
      'an event of an unknown stream',
      (link, id) => link.say({ kind: 'event', id, stream: 'other', data: Buffer.of(1) }),
    ],
    ['an empty event', (link, id) => link.say({ kind: 'event', id, stream: 'stdout', data: Buffer.of() })],
    ['a reply without a stream', (link, id) => link.say(reply(id, ok({ stdout: stream })))],
    [
      'a reply with one stream more',
      (link, id) => link.say(reply(id, ok({ stdout: stream, stderr: stream, other: stream }))),
    ],
    [
      'a stream that is shorter than it says',
      (link, id) => link.say(reply(id, ok({ stdout: { ...stream, bytes: 1 }, stderr: stream }))),
    ],
    ['an unknown code', (link, id) => link.say(reply(id, { ok: false, error: 'planted' }))],
    ['an unknown kind', (link) => link.say({ kind: 'planted' })],
    ['a request', (link, id) => link.say({ kind: 'request', id, operation: 'exec', params: {} })],
    [
      'a second hello',
      (link) =>
        link.say({
          kind: 'hello',
          version: 1,
          instance: randomUUID(),
          limits: { requestsInFlight: 1, eventCredit: 1 },
        }),
    ],
    ['a list', (link) => link.say([])],
    ['bytes that are no frame', (link) => link.socket.write('\xff\xff\xff\xffplanted', 'latin1')],
    [
      'more output than is allowed',
      async (link, id) => {
        for (let sent = 0; sent <= outputBytesMax; sent += eventBytesMax) {
          while (link.connection.creditOf(id) < eventBytesMax) await link.credits.next();
          link.connection.event(id, 'stderr', new Uint8Array(eventBytesMax));
        }
      },
    ],
  ])('%s', async (_name, misbehave) => {
    const { answered, link, request } = await underWay();
    await misbehave(link, request.id);
    await expectUncertain(answered, 'protocol');
    expect(gateway.logged).not.toContain('planted');
    await expectServed();
  });

  test('two replies: the first counts, the second ends the link', async () => {
    const { answered, link, request } = await underWay();
    link.say(reply(request.id, ok({ stdout: stream, stderr: stream })));
    link.say(reply(request.id, ok({ stdout: stream, stderr: stream })));
    expect((await answered).status).toBe(200);
    expect(await gateway.audit.next()).toMatchObject({ action: 'link.lost', reason: 'protocol' });
    await expectServed();
  });

  test('random bytes, at any moment', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 8, maxLength: 64 }), async (bytes) => {
        await gateway.link.whenReady();
        const link = await gateway.workerLink();
        // A length that is forbidden, so that no unlucky one makes the gateway wait for the rest.
        link.socket.write(Buffer.concat([Buffer.from([0xff]), bytes]));
        expect(await gateway.audit.next()).toMatchObject({ action: 'link.lost', reason: 'protocol' });
      }),
      { numRuns: 5 },
    );
    await expectServed();
  });
});
