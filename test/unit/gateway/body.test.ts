import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { bearer, GatewayUnderTest } from './gateway-under-test.ts';
import { exchange, RawClient, requestText } from './raw-client.ts';

const bodyBytesMax = 1_048_576;
let gateway: GatewayUnderTest;

beforeAll(async () => {
  gateway = await GatewayUnderTest.start({ bodyBytesMax });
  gateway.worker.onRequest = (link, { id }) => link.succeed(id);
});

afterAll(() => gateway.stop());

beforeEach(async () => {
  while (gateway.audit.size > 0) await gateway.audit.next();
});

const good = JSON.stringify({ user: 7, tool: 'git' });
const lengthOf = (body: string) => ({ 'Content-Length': String(Buffer.byteLength(body)) });
const send = (body: string, headers: Record<string, string> = {}) =>
  exchange(gateway.port, requestText('POST /v1/exec', { ...bearer, ...lengthOf(body), ...headers }, body));

describe('is JSON whatever its type', () => {
  test.each([
    ';;',
    '',
    'multipart/form-data',
    'multipart/form-data; boundary=x',
    'text/plain',
    'application/x-www-form-urlencoded',
    'application/json; charset=latin1',
    'application/json, text/html',
    '/',
    '\u00e9/\u00e9',
  ])('Content-Type: %s', async (type) => {
    expect((await send(good, { 'Content-Type': type })).status).toBe(200);
  });

  test('and with none', async () => {
    expect((await send(good)).status).toBe(200);
  });

  test('in chunks', async () => {
    const text = requestText('POST /v1/exec', { ...bearer, 'Transfer-Encoding': 'chunked' });
    const chunks = [...good].map((character) => `1\r\n${character}\r\n`).join('');
    expect((await exchange(gateway.port, `${text}${chunks}0\r\n\r\n`)).status).toBe(200);
  });
});

describe('is refused as bad_request, quoting nothing', () => {
  test.each([
    ['empty', ''],
    ['not JSON', '{"planted":'],
    ['not JSON at its end', `${good}planted`],
    ['a list', '["planted"]'],
    ['null', 'null'],
    ['a number', '4711'],
    ['a string', '"planted"'],
    ['with a byte order mark', `\ufeff${good}`],
    ['very deep', '['.repeat(500_000)],
    ['very deep in a field', `{"user":${'['.repeat(200_000)}${']'.repeat(200_000)},"tool":"git"}`],
    ['with a __proto__', '{"user":7,"tool":"git","__proto__":{"planted":1}}'],
    ['with a __proto__ that has the fields', '{"__proto__":{"user":7,"tool":"planted"}}'],
    ['with a constructor', '{"user":7,"tool":"git","constructor":{"planted":1}}'],
    ['with an unknown field', '{"user":7,"tool":"git","other":"planted"}'],
    ['with a field of a wrong type', '{"user":7,"tool":"git","args":"planted"}'],
    ['with a required field that is null', '{"user":null,"tool":"git"}'],
    ['with an unknown field, though it is null', '{"user":7,"tool":"git","uid":null}'],
    ['with a null of a name that every object has', '{"user":7,"tool":"git","constructor":null}'],
    ['with a user out of range', '{"user":1000001,"tool":"git"}'],
    ['with a user that is not whole', '{"user":1.5,"tool":"git"}'],
  ])('%s', async (_name, body) => {
    const answer = await send(body);
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body)).toEqual({ error: 'bad_request', message: expect.any(String) });
    expect(answer.body).not.toMatch(/planted|4711/);
    expect(await gateway.audit.next()).toMatchObject({ action: 'exec', status: 'denied', reason: 'bad_request' });
    expect(gateway.audit.size).toBe(0);
  });

  test('not UTF-8', async () => {
    const body = Buffer.concat([Buffer.from('{"user":7,"tool":"'), Buffer.from([0xc3, 0x28]), Buffer.from('"}')]);
    const response = await gateway.post('/v1/exec', new Uint8Array(body));
    expect(response.status).toBe(400);
  });

  test.each(['gzip', 'br', 'identity, gzip', 'x'])('Content-Encoding: %s', async (encoding) => {
    const answer = await send(good, { 'Content-Encoding': encoding });
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body)).toMatchObject({ error: 'bad_request' });
  });

  test('but Content-Encoding: identity is none', async () => {
    expect((await send(good, { 'Content-Encoding': 'Identity' })).status).toBe(200);
  });
});

describe('is refused with the code of its check, and the user in the audit', () => {
  test.each([
    ['outside_workspace', { user: 7, tool: 'git', dir: '../x' }],
    ['outside_workspace', { user: 7, tool: 'git', dir: '/x' }],
    ['bad_agent', { user: 7, tool: 'git', agent: 'x' }],
    ['bad_agent', { user: 7, tool: 'evo-workflow', agent: '-x' }],
    ['bad_request', { user: 7, tool: 'git', args: ['\0'] }],
    ['bad_request', { user: 7, tool: 'git', args: ['\ud800'] }],
    ['bad_request', { user: 7, tool: 'git', env: ['=x'] }],
  ])('%s: %j', async (error, fields) => {
    const response = await gateway.post('/v1/exec', fields);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error });
    const line = await gateway.audit.next();
    expect(line).toMatchObject({ action: 'exec', user: 7, status: 'denied', reason: error });
    expect(Object.keys(line).sort()).toEqual(['action', 'ms', 'reason', 'status', 'time', 'user']);
  });
});

describe('over the limit is body_too_large', () => {
  const padded = (size: number): string => good.slice(0, -1) + ' '.repeat(size - good.length) + good.slice(-1);

  test('but at the limit it is not', async () => {
    expect((await gateway.post('/v1/exec', padded(bodyBytesMax))).status).toBe(200);
  });

  test('by its length, before it is read', async () => {
    const headers = { ...bearer, 'Content-Length': String(bodyBytesMax + 1) };
    const answer = await exchange(gateway.port, requestText('POST /v1/exec', headers));
    expect(answer.status).toBe(413);
    expect(JSON.parse(answer.body)).toEqual({ error: 'body_too_large', message: expect.any(String) });
    expect(await gateway.audit.next()).toMatchObject({ action: 'exec', status: 'denied', reason: 'body_too_large' });
  });

  test('by its length, without a 100', async () => {
    const headers = { ...bearer, 'Content-Length': String(bodyBytesMax + 1), Expect: '100-continue' };
    expect((await exchange(gateway.port, requestText('POST /v1/exec', headers))).status).toBe(413);
  });

  test.each(['keep-alive', 'close'])('by count when it comes in chunks (Connection: %s)', async (connection) => {
    const client = await RawClient.connect(gateway.port);
    client.write(requestText('POST /v1/exec', { ...bearer, 'Transfer-Encoding': 'chunked', Connection: connection }));
    const size = 64 * 1024;
    for (let sent = 0; sent < 4 * bodyBytesMax; sent += size)
      client.write(`${size.toString(16)}\r\n${' '.repeat(size)}\r\n`);
    client.write('0\r\n\r\n');
    expect(await client.status()).toBe(413);
    client.socket.end();
    expect(await client.closed).toBe(false);
  });

  test('and a client that uploads 8 MiB gets the answer', async () => {
    const response = await gateway.post('/v1/exec', new Uint8Array(8 * 1024 * 1024));
    expect(response.status).toBe(413);
    expect(await response.json()).toMatchObject({ error: 'body_too_large' });
  });
});

test('Expect: 100-continue is answered with 100 once the request is let in', async () => {
  const client = await RawClient.connect(gateway.port);
  client.write(requestText('POST /v1/exec', { ...bearer, ...lengthOf(good), Expect: '100-continue' }));
  expect(await client.status()).toBe(100);
  expect(await client.write(good).status()).toBe(200);
  client.end();
});

test('a client that hangs up in the middle of its body asked for nothing', async () => {
  const client = await RawClient.connect(gateway.port);
  client.write(requestText('POST /v1/exec', { ...bearer, 'Content-Length': '100' }, '{"user":7'));
  client.socket.end();
  await client.closed;
  await gateway.connections.idle();
  expect(gateway.audit.size).toBe(0);
  expect((await send(good)).status).toBe(200);
});

test('a content over its limit is refused before anything else, naming the field and quoting nothing', async () => {
  const content = `planted${'x'.repeat(262_144)}`;
  const response = await gateway.post('/v1/files/write', { user: 7, path: 'f', content });
  expect(response.status).toBe(400);
  expect(await response.json()).toEqual({
    error: 'bad_request',
    message: 'The field "content" is larger than this service takes.',
  });
  expect(await gateway.audit.next()).toMatchObject({
    action: 'files.write',
    user: 7,
    status: 'denied',
    reason: 'bad_request',
  });
});
