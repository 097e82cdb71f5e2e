import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { eventBytesMax } from '../../../protocol/limits.ts';
import { execResult } from './fake-worker.ts';
import { bearer, GatewayUnderTest } from './gateway-under-test.ts';
import { RawClient, requestText } from './raw-client.ts';

// On a busy machine many connections take their time.
vi.setConfig({ testTimeout: 30_000 });

let gateway: GatewayUnderTest;
const outputBytesMax = 600_000;

beforeEach(async () => {
  gateway = await GatewayUnderTest.start({ outputBytesMax });
});

afterEach(() => gateway.stop());

const good = { user: 7, tool: 'git' };

describe('streams', () => {
  test('larger than the credit arrive whole, because it is given back', async () => {
    const answered = gateway.post('/v1/exec', good);
    const link = await gateway.workerLink();
    const request = await link.requests.next();
    const pieces = Math.floor(outputBytesMax / eventBytesMax);
    for (let piece = 0; piece < pieces; piece += 1) {
      while (link.connection.creditOf(request.id) < eventBytesMax) await link.credits.next();
      link.connection.event(request.id, 'stdout', new Uint8Array(eventBytesMax).fill(0x61 + piece));
    }
    const bytes = pieces * eventBytesMax;
    link.connection.reply(request.id, {
      ok: true,
      result: execResult,
      streams: { stdout: { bytes, cut: false }, stderr: { bytes: 0, cut: false } },
    });
    const { stdout } = (await (await answered).json()) as { stdout: string };
    expect(stdout.length).toBe(bytes);
    expect(new Set(stdout).size).toBe(pieces);
    expect(stdout.at(-1)).toBe(String.fromCharCode(0x60 + pieces));
  });

  test('of a cut output end with a whole character; without a cut nothing is hidden', async () => {
    const bytes = Buffer.from('한글').subarray(0, 4);
    gateway.worker.onRequest = (link, { id, params }) =>
      link.succeed(id, bytes, '', (params as typeof good).user === 1);
    const cut = (await (await gateway.post('/v1/exec', { user: 1, tool: 'git' })).json()) as { stdout: string };
    const whole = (await (await gateway.post('/v1/exec', { user: 2, tool: 'git' })).json()) as { stdout: string };
    expect(cut.stdout).toBe('한');
    expect(whole.stdout).toBe('한\ufffd');
  });
});

describe('too much is overloaded:', () => {
  test('for a worker that does not take in what it was sent', async () => {
    const link = await gateway.workerLink();
    link.socket.pause();
    gateway.worker.onRequest = (to, { id }) => to.succeed(id);
    const large = { ...good, args: ['x'.repeat(1_000_000)] };
    const answers = Array.from({ length: 12 }, () => gateway.post('/v1/exec', large));
    const first = await Promise.race(answers);
    expect(first.status).toBe(503);
    expect(await first.json()).toMatchObject({ error: 'overloaded' });
    link.socket.resume();
    const statuses = (await Promise.all(answers)).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([200, 503]));
    expect((await gateway.post('/v1/exec', good)).status).toBe(200);
  });

  test('more requests at once than the worker takes', async () => {
    const link = await gateway.workerLink();
    const body = JSON.stringify(good);
    const client = await RawClient.connect(gateway.port);
    const headers = { ...bearer, 'Content-Length': String(body.length) };
    client.write(requestText('POST /v1/exec', headers, body).repeat(512));
    for (let taken = 0; taken < 512; taken += 1) await link.requests.next();
    const response = await gateway.post('/v1/exec', good);
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ error: 'overloaded' });
    expect(response.headers.get('operation-id')).toBeNull();
    expect(await gateway.audit.next()).toMatchObject({ action: 'exec', status: 'denied', reason: 'overloaded' });
    for (let id = 1; id <= 512; id += 1) link.succeed(id);
    for (let taken = 0; taken < 512; taken += 1) expect(await client.status()).toBe(200);
    client.end();
  });
});
