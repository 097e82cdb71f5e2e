import { once } from 'node:events';
import { createServer } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { listen } from '../../../gateway/http-server.ts';
import { bearer, GatewayUnderTest } from './gateway-under-test.ts';
import { exchange, RawClient, requestText } from './raw-client.ts';

let gateway: GatewayUnderTest;

beforeEach(async () => {
  gateway = await GatewayUnderTest.start();
});

afterEach(() => gateway.stop());

const good = JSON.stringify({ user: 7, tool: 'git' });
const execText = requestText('POST /v1/exec', { ...bearer, 'Content-Length': String(good.length) }, good);

describe('an unknown route is route_not_found', () => {
  test.each([
    'GET /',
    'GET /v1/exec',
    'PUT /v1/exec',
    'QUERY /v1/exec',
    'PROPFIND /v1/exec',
    'TRACE /v1/exec',
    'OPTIONS *',
    'OPTIONS /v1/exec',
    'POST /v1/exec/',
    'POST //v1/exec',
    'POST /V1/EXEC',
    'POST /v1/exec;x',
    'POST /v1/exec%2f',
    'POST /v1/./exec',
    'POST /healthz',
    'GET /healthz/',
    'GET /%zz',
    'POST /%zz',
    'GET *',
    `GET /${'x'.repeat(8_000)}`,
    'GET /__proto__',
    'GET /constructor',
  ])('%s', async (line) => {
    const answer = await exchange(gateway.port, requestText(line, bearer));
    expect(answer.status).toBe(404);
    expect(JSON.parse(answer.body)).toEqual({ error: 'route_not_found', message: 'There is no such route.' });
    expect(gateway.audit.size).toBe(0);
  });

  test('and comes before the body, however large or wrong', async () => {
    const headers = { ...bearer, 'Content-Length': '99999999', 'Content-Type': ';;' };
    expect((await exchange(gateway.port, requestText('POST /nothing', headers))).status).toBe(404);
  });
});

test('a query is ignored', async () => {
  gateway.worker.onRequest = (link, { id }) => link.succeed(id);
  expect((await gateway.post('/v1/exec?user=9&tool=x', good)).status).toBe(200);
});

test('an absolute-form target names the same route', async () => {
  gateway.worker.onRequest = (link, { id }) => link.succeed(id);
  const headers = { ...bearer, 'Content-Length': String(good.length) };
  expect((await exchange(gateway.port, requestText('POST http://runner/v1/exec', headers, good))).status).toBe(200);
});

describe('what is not HTTP', () => {
  test.each([
    ['garbage', 'planted\r\n\r\n'],
    ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03planted'],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['a method that does not exist', 'PLANTED / HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['a header without a colon', 'GET / HTTP/1.1\r\nHost: x\r\nplanted\r\n\r\n'],
    ['a space before a colon', 'GET / HTTP/1.1\r\nHost : planted\r\n\r\n'],
    ['two lengths', `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nplanted`],
    ['a length and chunks', `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\nx`],
    ['an encoding after chunked', `POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, x\r\n\r\nplanted`],
    ['a negative length', `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n`],
    ['a bare line feed', `GET / HTTP/1.1\nHost: x\nplanted: x\n\n`],
    ['a folded header', `GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n planted\r\n\r\n`],
  ])('%s is bad_request, echoes nothing and ends the connection', async (_name, text) => {
    const client = await RawClient.connect(gateway.port);
    const answer = await client.write(Buffer.from(text, 'latin1')).answer();
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body)).toEqual({ error: 'bad_request', message: expect.any(String) });
    expect(answer.body).not.toMatch(/planted/i);
    expect(await client.closed).toBe(false);
  });

  test('a bad chunk in a body is bad_request', async () => {
    const client = await RawClient.connect(gateway.port);
    client.write(`${requestText('POST /v1/exec', { ...bearer, 'Transfer-Encoding': 'chunked' })}zz\r\n`);
    expect(await client.status()).toBe(400);
    expect(await client.closed).toBe(false);
    await gateway.connections.idle();
  });

  test('a head that is too large is headers_too_large, and no reset', async () => {
    const client = await RawClient.connect(gateway.port);
    const answer = await client.write(requestText('GET /', { Planted: 'x'.repeat(200_000) })).answer();
    expect(answer.status).toBe(431);
    expect(JSON.parse(answer.body)).toEqual({ error: 'headers_too_large', message: expect.any(String) });
    client.socket.end();
    expect(await client.closed).toBe(false);
  });

  test('garbage behind a request under way is not answered: its answer could be taken for that of the request', async () => {
    const client = await RawClient.connect(gateway.port);
    client.write(execText);
    const link = await gateway.workerLink();
    const { id } = await link.requests.next();
    client.write('garbage\r\n\r\n');
    await expect(client.answer()).rejects.toThrow('without an answer');
    link.succeed(id);
    await gateway.connections.idle();
  });

  test('a client that sends garbage and resets does no harm', async () => {
    for (let round = 0; round < 20; round += 1) {
      const client = await RawClient.connect(gateway.port);
      client.write('garbage\r\n\r\n');
      client.socket.resetAndDestroy();
      await client.closed;
    }
    expect((await fetch(`${gateway.url}/healthz`)).status).toBe(204);
  });
});

describe('Host', () => {
  const without = (line: string, more = '') =>
    `${line}\r\nAuthorization: ${bearer.Authorization}\r\n${more}Content-Length: ${good.length}\r\n\r\n${good}`;

  test.each([
    ['none', without('POST /v1/exec HTTP/1.1')],
    ['two', without('POST /v1/exec HTTP/1.1', 'Host: a\r\nHost: b\r\n')],
  ])('%s in HTTP/1.1 is bad_request', async (_name, text) => {
    const answer = await exchange(gateway.port, text);
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body)).toMatchObject({ error: 'bad_request' });
  });

  test('none in HTTP/1.1 is 401 first', async () => {
    expect((await exchange(gateway.port, 'GET / HTTP/1.1\r\n\r\n')).status).toBe(401);
  });

  test('none in HTTP/1.0 is right', async () => {
    gateway.worker.onRequest = (link, { id }) => link.succeed(id);
    expect((await exchange(gateway.port, without('POST /v1/exec HTTP/1.0'))).status).toBe(200);
  });
});

test('pipelined requests are answered in order', async () => {
  const client = await RawClient.connect(gateway.port);
  client.write(execText + execText + requestText('GET /x', bearer));
  const link = await gateway.workerLink();
  const [first, second] = [await link.requests.next(), await link.requests.next()];
  link.succeed(second.id, 'second');
  link.succeed(first.id, 'first');
  expect(JSON.parse((await client.answer()).body)).toMatchObject({ stdout: 'first' });
  expect(JSON.parse((await client.answer()).body)).toMatchObject({ stdout: 'second' });
  expect(await client.status()).toBe(404);
  client.end();
});

test('a client that hangs up does not stop the operation', async () => {
  const client = await RawClient.connect(gateway.port);
  client.write(execText);
  const link = await gateway.workerLink();
  const { id } = await link.requests.next();
  client.end();
  await client.closed;
  await gateway.connections.idle();
  link.succeed(id, 'to nobody');
  gateway.worker.onRequest = (to, request) => to.succeed(request.id, 'to the next');
  expect(await (await gateway.post('/v1/exec', good)).json()).toMatchObject({ stdout: 'to the next' });
  expect(link.cancels.size).toBe(0);
  expect(gateway.audit.size).toBe(0);
});

test('a hundred idle connections are no burden to the next', async () => {
  const clients = await Promise.all(Array.from({ length: 100 }, () => RawClient.connect(gateway.port)));
  expect((await fetch(`${gateway.url}/healthz`)).status).toBe(204);
  for (const client of clients) client.end();
});

test('a port that is taken stops the start with a sentence that names the variable', async () => {
  const blocked = createServer();
  const other = createServer();
  other.listen(0, '127.0.0.1');
  await once(other, 'listening');
  const address = other.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  // The HTTP server is a net server; nothing of HTTP is asked of it here.
  await expect(listen(blocked as Parameters<typeof listen>[0], { host: '127.0.0.1', port })).rejects.toThrow(
    'RUNNER_ADDR cannot be listened on: the port is taken by another process.',
  );
  other.close();
});
