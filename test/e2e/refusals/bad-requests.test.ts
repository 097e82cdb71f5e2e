import { existsSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Answer } from '../../support/http.ts';
import { RawConnection, rawRequest, statusesIn } from '../../support/raw-http.ts';
import { Service, token } from '../../support/service.ts';
import { spaceOf, systemTools } from '../../support/user.ts';

const user = 110_100;
let service: Service;

beforeAll(async () => {
  service = await Service.start({ settings: { ...systemTools('true'), RUNNER_MAX_BODY_BYTES: '20000' } });
});
afterAll(() => service.stop());

const send = (body: string | Buffer, headers: Readonly<Record<string, string>> = {}): Promise<Answer> =>
  service.client.send('POST', '/v1/exec', body, { authorization: `Bearer ${token}`, ...headers });

/** Expects a refusal of the closed shape, its audit line, and that no space came of it. */
const refused = async (answer: Answer, status: number, code: string): Promise<string> => {
  expect([answer.status, answer.body.error], answer.text).toEqual([status, code]);
  expect(Object.keys(answer.body).sort()).toEqual(['error', 'message']);
  expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
  expect(answer.headers['operation-id']).toBeUndefined();
  expect(existsSync(spaceOf(service, user)), 'no space').toBe(false);
  return answer.body.message ?? '';
};

test('what is no JSON object is 400', async () => {
  const bodies = [
    '',
    ' ',
    'null',
    '[]',
    '[{}]',
    '"x"',
    '7',
    'true',
    '{',
    '{"user":}',
    "{'user':7}",
    'user=7&tool=git',
    '{"user":7}x',
    '\ufeff{}',
    'NaN',
  ];
  for (const body of bodies) expect(await refused(await send(body), 400, 'bad_request'), body).toContain('JSON object');
  await refused(await send(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])), 400, 'bad_request');
  await refused(await send(Buffer.from(JSON.stringify({ user, tool: 'true' }), 'utf16le')), 400, 'bad_request');
});

test('a missing, a wrong or an unknown field is 400, and the message names it', async () => {
  const cases: [unknown, string][] = [
    [{}, 'user'],
    [{ user }, 'tool'],
    [{ tool: 'true' }, 'user'],
    [{ user: null, tool: 'true' }, 'user'],
    [{ user, tool: null }, 'tool'],
    [{ user, tool: 7 }, 'tool'],
    [{ user, tool: ['true'] }, 'tool'],
    [{ user, tool: 'x'.repeat(257) }, 'tool'],
    [{ user, tool: 'true', args: 'x' }, 'args'],
    [{ user, tool: 'true', args: { 0: 'x' } }, 'args'],
    [{ user, tool: 'true', args: ['a', 7] }, 'args[1]'],
    [{ user, tool: 'true', args: [null] }, 'args[0]'],
    [{ user, tool: 'true', args: ['a', 'b', 'nul\0'] }, 'args[2]'],
    [{ user, tool: 'true', args: ['\ud800'] }, 'args[0]'],
    [{ user, tool: 'true', dir: 7 }, 'dir'],
    [{ user, tool: 'true', dir: ['a'] }, 'dir'],
    [{ user, tool: 'true', env: {} }, 'env'],
    [{ user, tool: 'true', uid: 0 }, 'uid'],
    [{ user, tool: 'true', stdin: 'x' }, 'stdin'],
    [{ user, tool: 'true', timeout: 1 }, 'timeout'],
    [{ user, tool: 'true', User: 1 }, 'User'],
    [{ user, tool: 'true', constructor: 1 }, 'constructor'],
  ];
  for (const [body, field] of cases)
    expect(await refused(await send(JSON.stringify(body)), 400, 'bad_request'), JSON.stringify(body)).toContain(
      `"${field}"`,
    );
});

test('"__proto__" is an unknown field like others', async () => {
  await refused(await send(`{"user":${user},"tool":"true","__proto__":{"user":1}}`), 400, 'bad_request');
  await refused(await send('{"__proto__":{"user":110100,"tool":"true"}}'), 400, 'bad_request');
});

test('a user is a whole number from 0 to 1,000,000', async () => {
  for (const wrong of [
    '-1',
    '1000001',
    '7.5',
    '"7"',
    '1e99',
    '-0.5',
    'true',
    '[7]',
    '{}',
    '4294967296',
    '9007199254740993',
  ])
    expect(await refused(await send(`{"user":${wrong},"tool":"true"}`), 400, 'bad_request'), wrong).toContain('"user"');
});

test('a field that the caller made up is not repeated when it does not look like a name', async () => {
  const name = 'a secret: field/name';
  const message = await refused(await send(JSON.stringify({ user, tool: 'true', [name]: 1 })), 400, 'bad_request');
  expect(message).not.toContain('secret');
});

test('no message has any value of the request', async () => {
  const canary = 'canary-8f1d';
  const bodies = [
    { user: canary, tool: 'true' },
    { user, tool: [canary] },
    { user, tool: 'true', args: [{ canary }] },
    { user, tool: 'true', args: canary },
    { user, tool: 'true', args: [`${canary}\0`] },
    { user, tool: 'true', dir: { canary } },
    { user, tool: 'true', env: [canary] },
    { user, tool: 'true', agent: { canary } },
  ];
  for (const body of bodies) {
    const answer = await send(JSON.stringify(body));
    expect(answer.status, answer.text).toBe(400);
    expect(answer.text).not.toContain(canary);
  }
  for (const body of [`{"user":${canary}}`, canary]) expect((await send(body)).text).not.toContain(canary);
  expect(`${service.auditText}${service.log}`).not.toContain(canary);
});

test('a body over the limit is 413, by its declared length at once and by its real one when it is chunked', async () => {
  const fits = JSON.stringify({ user, tool: 'x'.repeat(100), args: ['x'.repeat(19_000)] });
  expect((await send(fits)).status).toBe(403);
  await refused(await send(fits.padEnd(20_001)), 413, 'body_too_large');
  expect((await send(fits.padEnd(20_000))).status).toBe(403);
  const head = ['Host: x', 'Connection: close', `Authorization: Bearer ${token}`, 'Transfer-Encoding: chunked'];
  const connection = new RawConnection(service.port).say(rawRequest('POST /v1/exec HTTP/1.1', head));
  for (let sent = 0; sent <= 20_000; sent += 1_000) connection.say('3e8\r\n', 'x'.repeat(1_000), '\r\n');
  expect(statusesIn(await connection.say('0\r\n\r\n').ended())).toEqual([413]);
});

test('the body is read as JSON whatever its content type is said to be', async () => {
  for (const type of [
    'application/json',
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data',
    'no type at all',
    '',
  ])
    expect((await send(JSON.stringify({ user, tool: 'unknown' }), { 'content-type': type })).status, type).toBe(403);
});

test('an encoded body is 400', async () => {
  for (const encoding of ['gzip', 'deflate', 'br', 'identity, gzip'])
    await refused(await send('{}', { 'content-encoding': encoding }), 400, 'bad_request');
});

test('unknown routes and other methods are 404', async () => {
  const headers = { authorization: `Bearer ${token}` };
  const body = JSON.stringify({ user, tool: 'true' });
  for (const path of [
    '/',
    '/v1',
    '/v1/',
    '/v1/exec/',
    '/v1/exec/x',
    '/v1/execute',
    '/V1/exec',
    '/v1//exec',
    '//v1/exec',
    '/v1/%65xec/..',
    '/v1/exec%00',
    '/%zz',
    '/healthz',
  ]) {
    const answer = await service.client.send('POST', path, body, headers);
    await refused(answer, 404, 'route_not_found');
    expect(answer.text).not.toContain('exec');
  }
  for (const method of ['GET', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE'])
    await refused(await service.client.send(method, '/v1/exec', undefined, headers), 404, 'route_not_found');
});

test('every refusal of the route has its audit line, with the user where there was a valid one', async () => {
  const count = (line: (typeof service.audit)[number]) => line['reason'] === 'bad_request' && line['user'] === user;
  const before = service.audit.filter(count).length;
  await send(JSON.stringify({ user, tool: 7 }));
  const line = await service.audited(() => service.audit.filter(count).length === before + 1);
  expect(line).toBeDefined();
  const last = service.audit.filter(count).at(-1) ?? {};
  expect(last).toMatchObject({ action: 'exec', user, status: 'denied', reason: 'bad_request' });
  expect(Object.keys(last).sort()).toEqual(['action', 'ms', 'reason', 'status', 'time', 'user']);
  await send(JSON.stringify({ user: -1, tool: 'true' }));
  const nobody = await service.audited((found) => found['reason'] === 'bad_request' && !('user' in found));
  expect(nobody).toMatchObject({ action: 'exec', status: 'denied' });
});

test('an unknown field is refused though it be null', async () => {
  const answer = await send(JSON.stringify({ user, tool: 'true', unknown: null }));
  await refused(answer, 400, 'bad_request');
});
