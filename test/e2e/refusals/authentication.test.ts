import { existsSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { RawConnection, rawRequest, statusesIn } from '../../support/raw-http.ts';
import { Service, token } from '../../support/service.ts';
import { spaceOf, systemTools } from '../../support/user.ts';

const user = 110_000;
const previous = 'an-older-token-that-is-still-taken-0123456789';
let service: Service;

beforeAll(async () => {
  service = await Service.start({ settings: { ...systemTools('true'), RUNNER_TOKEN_PREVIOUS: previous } });
});
afterAll(() => service.stop());

const request = JSON.stringify({ user, tool: 'true' });
const denials = () => service.audit.filter(({ action }) => action === 'auth.denied').length;

/** Sends with this Authorization header and expects a 401 that says nothing else, audited once. */
const denied = async (authorization: string | undefined, method = 'POST', path = '/v1/exec'): Promise<void> => {
  const before = denials();
  const headers = authorization === undefined ? {} : { authorization };
  const answer = await service.client.send(method, path, method === 'HEAD' ? undefined : request, headers);
  const what = `${method} ${path} ${authorization}`;
  expect(answer.status, what).toBe(401);
  expect(answer.headers['www-authenticate'], what).toBe('Bearer');
  if (method !== 'HEAD') {
    expect(Object.keys(answer.body).sort(), what).toEqual(['error', 'message']);
    expect(answer.body.error, what).toBe('unauthenticated');
  }
  await service.audited(() => denials() === before + 1);
};

test('the right token is let in, the scheme in any case; so this can fail', async () => {
  for (const scheme of ['Bearer', 'bearer', 'BEARER', 'Bearer  ']) {
    const { status } = await service.client.send('POST', '/v1/exec', request, { authorization: `${scheme} ${token}` });
    expect(status, scheme).toBe(200);
  }
});

test('no token, a wrong one, a part of it, more than it, another scheme: 401', async () => {
  const wrong = [
    undefined,
    '',
    'Bearer',
    'Bearer ',
    'Bearer x',
    `Bearer ${token.slice(0, -1)}`,
    `Bearer ${token}x`,
    `Bearer x${token}`,
    `Bearer ${token} ${token}`,
    `Bearer ${token.toUpperCase()}`,
    `Bearer ${token},`,
    `Bearer "${token}"`,
    `Bearer\t${token}`,
    `Bearer${token}`,
    token,
    `Basic ${Buffer.from(`x:${token}`).toString('base64')}`,
    `Basic ${token}`,
    `Token ${token}`,
    'Bearer undefined',
    'Bearer null',
    'Bearer ********************************',
  ];
  for (const authorization of wrong) await denied(authorization);
});

test('every path and every method gets 401 without a token, known or not; only GET /healthz is open', async () => {
  const paths = [
    '/v1/exec',
    '/v1/exec/',
    '/V1/EXEC',
    '/v1/unknown',
    '/',
    '/mcp',
    '/metrics',
    '/docs',
    '/openapi.json',
    '/%zz',
    '//healthz',
    '/healthz/',
    '/healthz/../v1/exec',
    '/healthz%2f..',
    '*',
  ];
  for (const path of paths) await denied(undefined, 'POST', path);
  for (const path of paths) await denied(undefined, 'GET', path);
  for (const method of ['HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE', 'PATCH', 'PROPFIND']) {
    await denied(undefined, method, '/v1/exec');
    await denied(undefined, method, '/healthz');
  }
  await denied(undefined, 'POST', '/healthz');
  expect((await service.client.get('/healthz')).status).toBe(204);
  expect((await service.client.get('/healthz')).text).toBe('');
});

test('two Authorization headers are refused, whichever of them is right', async () => {
  const before = denials();
  for (const values of [
    [token, token],
    [token, 'wrong'],
    ['wrong', token],
  ]) {
    const headers = ['Host: x', 'Connection: close', ...values.map((value) => `Authorization: Bearer ${value}`)];
    const connection = new RawConnection(service.port).say(
      rawRequest('POST /v1/exec HTTP/1.1', [...headers, `Content-Length: ${request.length}`], request),
    );
    expect(statusesIn(await connection.ended())).toEqual([401]);
  }
  await service.audited(() => denials() === before + 3);
});

test('the token in the query, in a cookie, in the body or in another header counts for nothing', async () => {
  const before = denials();
  const tries: [string, Record<string, string>][] = [
    [`/v1/exec?token=${token}&access_token=${token}`, {}],
    ['/v1/exec', { cookie: `token=${token}; Authorization=Bearer ${token}` }],
    ['/v1/exec', { 'proxy-authorization': `Bearer ${token}`, 'x-authorization': `Bearer ${token}` }],
  ];
  for (const [path, headers] of tries)
    expect((await service.client.send('POST', path, JSON.stringify({ token }), headers)).status).toBe(401);
  await service.audited(() => denials() === before + tries.length);
});

test('the answer comes before the body: it is neither waited for nor read', async () => {
  const head = ['Host: x', 'Content-Length: 1000000'];
  const connection = new RawConnection(service.port).say(rawRequest('POST /v1/exec HTTP/1.1', head));
  expect(statusesIn(await connection.heard(/unauthenticated/))).toEqual([401]);
  connection.destroy();
  const chunked = new RawConnection(service.port).say(
    rawRequest('POST /v1/exec HTTP/1.1', ['Host: x', 'Transfer-Encoding: chunked'], '5\r\nhello\r\n'),
  );
  expect(statusesIn(await chunked.heard(/unauthenticated/))).toEqual([401]);
  chunked.destroy();
});

test('"100 Continue" is said only after the token was right', async () => {
  const head = ['Host: x', 'Expect: 100-continue', `Content-Length: ${request.length}`];
  const without = new RawConnection(service.port).say(rawRequest('POST /v1/exec HTTP/1.1', head));
  expect(statusesIn(await without.heard(/unauthenticated/))).toEqual([401]);
  without.destroy();
  const withToken = new RawConnection(service.port).say(
    rawRequest('POST /v1/exec HTTP/1.1', [...head, `Authorization: Bearer ${token}`]),
  );
  await withToken.heard(/^HTTP\/1\.1 100 Continue\r\n\r\n/);
  expect(statusesIn(await withToken.say(request).heard(/exitCode/))).toEqual([100, 200]);
  withToken.destroy();
});

test('a body that would be too large, or is no JSON, is still 401 first', async () => {
  for (const body of ['x'.repeat(2_000_000), 'no json', '']) {
    const { status } = await service.client.send('POST', '/v1/exec', body, { authorization: 'Bearer wrong' });
    expect(status).toBe(401);
  }
});

test('the previous token is let in beside the new one', async () => {
  for (const value of [previous, token]) {
    const headers = { authorization: `Bearer ${value}` };
    expect((await service.client.send('POST', '/v1/exec', request, headers)).status).toBe(200);
  }
  await denied(`Bearer ${previous}${token}`);
});

test('audit lines of denials have nothing but time, action, ms, status and reason', async () => {
  const lines = service.audit.filter(({ action }) => action === 'auth.denied');
  expect(lines.length).toBeGreaterThan(50);
  for (const line of lines) {
    expect(Object.keys(line).sort()).toEqual(['action', 'ms', 'reason', 'status', 'time']);
    expect(line).toMatchObject({ status: 'denied', reason: 'unauthenticated' });
  }
});

test('a denied request makes no space', async () => {
  await denied('Bearer wrong');
  const other = JSON.stringify({ user: user + 1, tool: 'true' });
  expect((await service.client.send('POST', '/v1/exec', other, { authorization: 'Bearer x' })).status).toBe(401);
  expect(existsSync(spaceOf(service, user + 1))).toBe(false);
  expect(existsSync(spaceOf(service, user))).toBe(true);
});
