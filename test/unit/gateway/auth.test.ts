import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { bearer, GatewayUnderTest, token } from './gateway-under-test.ts';
import { exchange, RawClient, requestText } from './raw-client.ts';

const previous = 'the-token-before-this-one-of-enough-length';
let gateway: GatewayUnderTest;

beforeAll(async () => {
  gateway = await GatewayUnderTest.start({ tokens: { current: token, previous } });
  gateway.worker.onRequest = (link, { id }) => link.succeed(id);
});

afterAll(() => gateway.stop());

beforeEach(async () => {
  while (gateway.audit.size > 0) await gateway.audit.next();
});

const body = JSON.stringify({ user: 7, tool: 'git' });
const length = { 'Content-Length': String(body.length) };
const statusWith = async (authorization: string): Promise<number> =>
  (await exchange(gateway.port, requestText('POST /v1/exec', { ...length, Authorization: authorization }, body)))
    .status;

const denied = { time: expect.any(String), action: 'auth.denied', ms: 0, status: 'denied', reason: 'unauthenticated' };

describe('the token', () => {
  test.each(['Bearer', 'bearer', 'BEARER', 'bEaReR'])('is taken with the scheme spelled %s', async (scheme) => {
    expect(await statusWith(`${scheme} ${token}`)).toBe(200);
  });

  test('is taken when it is the previous one', async () => {
    expect(await statusWith(`Bearer ${previous}`)).toBe(200);
  });

  test.each([
    ['nothing', ''],
    ['a scheme alone', 'Bearer'],
    ['a scheme and a space', 'Bearer '],
    ['the token alone', token],
    ['another scheme', `Basic ${token}`],
    ['a token that is cut short', `Bearer ${token.slice(0, -1)}`],
    ['a token that is longer', `Bearer ${token}x`],
    ['a token in another case', `Bearer ${token.toUpperCase()}`],
    ['two tokens', `Bearer ${token} ${token}`],
    ['a list', `Bearer ${token}, Bearer ${token}`],
    ['a scheme that only begins so', `BearerX ${token}`],
  ])('is refused: %s', async (_name, authorization) => {
    expect(await statusWith(authorization)).toBe(401);
    expect(await gateway.audit.next()).toEqual(denied);
  });

  test('is refused in two headers, even if both are valid', async () => {
    const line = `Authorization: Bearer ${token}\r\n`;
    const text = `POST /v1/exec HTTP/1.1\r\nHost: x\r\n${line}${line}Content-Length: ${body.length}\r\n\r\n${body}`;
    expect((await exchange(gateway.port, text)).status).toBe(401);
  });

  test('is refused in a second header that thousands of others hide', async () => {
    const line = `Authorization: Bearer ${token}\r\n`;
    const text = `POST /v1/exec HTTP/1.1\r\nHost: x\r\n${line}${'a:\r\n'.repeat(2_500)}${line}\r\n`;
    expect((await exchange(gateway.port, text)).status).toBe(401);
  });

  test('never gets in by chance', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string({
          unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)),
          maxLength: 80,
        }),
        fc.constantFrom('Bearer ', 'bearer  ', 'Basic ', ''),
        async (guess, scheme) => {
          fc.pre(guess.trim() !== token && guess.trim() !== previous);
          expect(await statusWith(scheme + guess)).toBe(401);
        },
      ),
      { numRuns: 100 },
    );
  });
});

describe('without a token', () => {
  test.each([
    'GET /',
    'GET /nothing',
    'POST /v1/exec',
    'GET /v1/exec',
    'POST /v1/exec?token=x',
    'POST /v1/exec/',
    'HEAD /healthz',
    'POST /healthz',
    'GET /healthz/',
    'GET //healthz',
    'GET /healthz%20',
    'GET /healthz;x',
    'GET /HEALTHZ',
    'GET /x/../healthz',
    'GET http://runner/healthz',
    'POST http://runner/v1/exec',
    'GET /%zz',
    'GET /%',
    'OPTIONS *',
    'GET *',
    'PROPFIND /v1/exec',
    'QUERY /v1/exec',
    'TRACE /v1/exec',
    'DELETE /v1/exec',
    'GET /metrics',
    'GET /docs',
    'GET /openapi.json',
    'POST /mcp',
  ])('%s is 401 and audited once', async (line) => {
    const client = await RawClient.connect(gateway.port);
    client.write(requestText(line));
    // A HEAD answer has the length of a body that does not come: only the status line is of interest.
    const status = line.startsWith('HEAD')
      ? await new Promise((resolve) =>
          client.socket.once('data', (head: Buffer) => resolve(Number(head.subarray(9, 12)))),
        )
      : await client.status();
    expect(status).toBe(401);
    client.end();
    expect(await gateway.audit.next()).toEqual(denied);
    expect(gateway.audit.size).toBe(0);
  });

  test('the answer has the shape of every error, names the scheme, and the connection goes on', async () => {
    const client = await RawClient.connect(gateway.port);
    const answer = await client.write(requestText('GET /v1/exec')).answer();
    expect(JSON.parse(answer.body)).toEqual({ error: 'unauthenticated', message: expect.any(String) });
    expect(answer.headers['www-authenticate']).toBe('Bearer');
    expect(await client.write(requestText('GET /x', bearer)).status()).toBe(404);
    client.end();
  });

  test('CONNECT is answered and ends the connection', async () => {
    const client = await RawClient.connect(gateway.port);
    const answer = await client.write('CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\n').answer();
    expect(answer.status).toBe(401);
    expect(JSON.parse(answer.body)).toMatchObject({ error: 'unauthenticated' });
    expect(await client.closed).toBe(false);
    expect(await gateway.audit.next()).toEqual(denied);
  });

  test('CONNECT with a token names no route', async () => {
    const client = await RawClient.connect(gateway.port);
    client.write(requestText('CONNECT example.org:443', bearer));
    expect(await client.status()).toBe(404);
    expect(await client.closed).toBe(false);
  });

  test('an upgrade is a request like any other', async () => {
    const upgrade = { Connection: 'Upgrade', Upgrade: 'websocket' };
    expect((await exchange(gateway.port, requestText('GET /healthz', upgrade))).status).toBe(204);
    expect((await exchange(gateway.port, requestText('GET /v1/exec', upgrade))).status).toBe(401);
    expect((await exchange(gateway.port, requestText('GET /v1/exec', { ...upgrade, ...bearer }))).status).toBe(404);
  });

  test('GET /healthz is open, with a query too, and not audited', async () => {
    expect((await fetch(`${gateway.url}/healthz`)).status).toBe(204);
    expect((await fetch(`${gateway.url}/healthz?probe=1`)).status).toBe(204);
    expect(gateway.audit.size).toBe(0);
  });
});

describe('before the body', () => {
  test('a large upload without a token gets the 401 and no reset', async () => {
    const upload = new Uint8Array(8 * 1024 * 1024).fill(0x20);
    const response = await fetch(`${gateway.url}/v1/exec`, { method: 'POST', body: upload });
    expect(response.status).toBe(401);
    expect(await response.json()).toMatchObject({ error: 'unauthenticated' });
  });

  test.each(['keep-alive', 'close'])('a raw upload (Connection: %s) gets the 401 and can end', async (connection) => {
    const size = 8 * 1024 * 1024;
    const client = await RawClient.connect(gateway.port);
    client.write(requestText('POST /v1/exec', { 'Content-Length': String(size), Connection: connection }));
    expect(await client.status()).toBe(401);
    client.write(new Uint8Array(size));
    if (connection === 'keep-alive') {
      expect(await client.write(requestText('GET /x', bearer)).status()).toBe(404);
      client.end();
    }
    expect(await client.closed).toBe(false);
  });

  test('Expect: 100-continue is answered with 401, not with 100', async () => {
    const headers = { 'Content-Length': '10', Expect: '100-continue' };
    const client = await RawClient.connect(gateway.port);
    expect(await client.write(requestText('POST /v1/exec', headers)).status()).toBe(401);
    expect(await client.closed).toBe(false);
  });

  test('another expectation is 401 without a token and 417 with one', async () => {
    const expectation = { Expect: 'tea' };
    expect((await exchange(gateway.port, requestText('POST /v1/exec', expectation))).status).toBe(401);
    const answer = await exchange(gateway.port, requestText('POST /v1/exec', { ...expectation, ...bearer }));
    expect(answer.status).toBe(417);
    expect(JSON.parse(answer.body)).toMatchObject({ error: 'expectation_failed' });
  });
});

test.each([
  ['none', { current: undefined, previous: undefined }],
  ['only a previous one', { current: undefined, previous }],
])('with %s configured nothing but the health is open', async (_name, tokens) => {
  const closed = await GatewayUnderTest.start({ tokens });
  for (const guess of ['', 'undefined', token, previous])
    expect(
      (await exchange(closed.port, requestText('POST /v1/exec', { Authorization: `Bearer ${guess}` }))).status,
    ).toBe(401);
  expect((await fetch(`${closed.url}/healthz`)).status).toBe(204);
  await closed.stop();
});
