import { afterAll, beforeAll, expect, test } from 'vitest';
import { RawConnection, rawRequest, statusesIn } from '../../support/raw-http.ts';
import { Service, token } from '../../support/service.ts';
import { systemTools } from '../../support/user.ts';
import { eventually } from '../../support/wait.ts';

const user = 110_700;
const canary = 'canary-51c7';
const body = JSON.stringify({ user, tool: 'true' });
const authorization = `Authorization: Bearer ${token}`;
let service: Service;

beforeAll(async () => {
  service = await Service.start({ settings: systemTools('true') });
});
afterAll(() => service.stop());

const runs = () => service.audit.filter(({ action, status }) => action === 'exec' && status === 'ok').length;

/** After whatever was said, the next request on a new connection is served, and nothing was run by what was said. */
const stillServes = async (before: number): Promise<void> => {
  expect((await service.client.get('/healthz')).status).toBe(204);
  const { body: answer } = await service.exec(user, 'true');
  await service.audited(({ operationId }) => operationId === answer.operationId);
  expect(runs()).toBe(before + 1);
};

/** Says bytes, and expects one answer with this status, in the service's own shape, and the end of the connection. */
const refused = async (bytes: string | Buffer, statuses: readonly number[]): Promise<void> => {
  const before = runs();
  const text = await new RawConnection(service.port).say(bytes).ended();
  const what = JSON.stringify(bytes.toString('latin1').slice(0, 120));
  const found = statusesIn(text);
  expect(found.length, `${what}: ${text.slice(0, 300)}`).toBe(1);
  expect(statuses, what).toContain(found[0]);
  expect(text, what).toContain('Content-Type: application/json');
  expect(JSON.parse(text.split('\r\n\r\n')[1] ?? ''), what).toMatchObject({ message: expect.any(String) });
  expect(text, what).not.toContain(canary);
  await stillServes(before);
};

const post = (headers: readonly string[], content: string, line = 'POST /v1/exec HTTP/1.1') =>
  rawRequest(line, ['Host: x', authorization, ...headers], content);

test('what is not HTTP', async () => {
  await refused(`${canary}\r\n\r\n`, [400]);
  await refused(Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03]), [400]);
  await refused(Buffer.alloc(1_000), [400]);
  await refused('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', [400, 401]);
  await refused(`GET /healthz ${canary}\r\n\r\n`, [400]);
});

test('HTTP/0.9, an unknown version, lower-case and unknown methods', async () => {
  // An old and very simple client gets no further than any other without a token.
  await refused('POST /v1/exec\r\n\r\n', [400, 401]);
  await refused(post([], '', 'POST /v1/exec HTTP/3.7'), [400]);
  await refused(post([], '', 'post /v1/exec HTTP/1.1'), [400]);
  await refused(post([], '', `${canary} /v1/exec HTTP/1.1`), [400]);
});

test('heads that are too large are 431', async () => {
  await refused(post([`X-Large: ${'x'.repeat(20_000)}`], ''), [431]);
  await refused(
    post(
      Array.from({ length: 3_000 }, (_, index) => `X-${index}: ${canary}`),
      '',
    ),
    [431],
  );
  await refused(`POST /${'x'.repeat(30_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, [431]);
});

test('heads that are not well-formed', async () => {
  await refused(post([`X ${canary}: y`], ''), [400]);
  await refused(post([`: ${canary}`], ''), [400]);
  await refused(post([`X: a\u0000${canary}`], ''), [400]);
  await refused(`POST /v1/exec HTTP/1.1\r\nHost: x\r\n folded: ${canary}\r\n\r\n`, [400]);
  await refused(`POST /v1/exec HTTP/1.1\nHost: x\n${authorization}\n\n`, [400]);
});

test('lengths that contradict each other, so that two readers would see two requests', async () => {
  const two = [`Content-Length: ${body.length}`, 'Content-Length: 5'];
  await refused(post(two, body), [400]);
  await refused(post([`Content-Length: ${body.length}, ${body.length}`], body), [400]);
  await refused(post([`Content-Length: ${body.length}`, 'Transfer-Encoding: chunked'], body), [400]);
  await refused(post(['Transfer-Encoding: chunked', `Content-Length: ${body.length}`], `0\r\n\r\n${body}`), [400]);
  for (const length of ['-1', '+5', '0x10', '1e3', '5 5', canary, '99999999999999999999'])
    await refused(post([`Content-Length: ${length}`], body), [400, 413]);
  for (const encoding of ['identity', 'chunked, identity', 'xchunked', 'chunked\u000b', 'gzip, chunked, gzip'])
    await refused(post([`Transfer-Encoding: ${encoding}`, 'Connection: close'], `0\r\n\r\n${body}`), [400]);
});

test('chunks that are not well-formed', async () => {
  const chunked = ['Transfer-Encoding: chunked'];
  await refused(post(chunked, `zz\r\n${body}`), [400]);
  await refused(post(chunked, `-5\r\n${body}`), [400]);
  await refused(post(chunked, `5\r\nhello world\r\n0\r\n\r\n`), [400]);
  await refused(post(chunked, `ffffffffffffffff1\r\n${canary}`), [400, 413]);
  await refused(post(chunked, `5;${'x'.repeat(40_000)}\r\nhello\r\n0\r\n\r\n`), [400, 413, 431]);
});

test('two Host headers, or none, are 400', async () => {
  await refused(post(['Host: y', 'Connection: close', `Content-Length: ${body.length}`], body), [400]);
  const head = [authorization, 'Connection: close', `Content-Length: ${body.length}`];
  await refused(rawRequest('POST /v1/exec HTTP/1.1', head, body), [400]);
});

test('CONNECT is no way through', async () => {
  await refused(rawRequest('CONNECT 127.0.0.1:1 HTTP/1.1', ['Host: x']), [401]);
  await refused(rawRequest('CONNECT 127.0.0.1:1 HTTP/1.1', ['Host: x', authorization]), [404]);
});

test('an Upgrade is ignored: the request is answered like any other', async () => {
  const before = runs();
  const upgrade = ['Connection: Upgrade, close', 'Upgrade: websocket', `Content-Length: ${body.length}`];
  const text = await new RawConnection(service.port).say(post(upgrade, body)).heard(/exitCode|error/);
  expect(statusesIn(text)).toEqual([200]);
  const without = rawRequest('GET /v1/exec HTTP/1.1', ['Host: x', 'Connection: Upgrade', 'Upgrade: h2c']);
  const connection = new RawConnection(service.port).say(without);
  expect(statusesIn(await connection.heard(/unauthenticated/))).toEqual([401]);
  connection.destroy();
  await stillServes(before + 1);
});

test('an expectation that is not 100-continue is 417, after the token', async () => {
  const head = ['Expect: the-unexpected', 'Connection: close', 'Content-Length: 0'];
  await refused(post(head, ''), [417]);
  await refused(rawRequest('POST /v1/exec HTTP/1.1', ['Host: x', ...head]), [401]);
});

test('HEAD, OPTIONS, TRACE and a path that is not well-formed, with the token', async () => {
  for (const line of [
    'OPTIONS * HTTP/1.1',
    'TRACE /v1/exec HTTP/1.1',
    `POST /%zz${canary} HTTP/1.1`,
    'POST http://x/v1/exec%zz HTTP/1.1',
  ])
    await refused(post(['Connection: close', `X: ${canary}`], '', line), [404]);
  const head = await new RawConnection(service.port)
    .say(post(['Connection: close'], '', 'HEAD /v1/exec HTTP/1.1'))
    .ended();
  expect(statusesIn(head)).toEqual([404]);
  expect(head.split('\r\n\r\n')[1]).toBe('');
});

const health = rawRequest('GET /healthz HTTP/1.1', ['Host: x']);

test('requests in a row on one connection are answered in order', async () => {
  const before = runs();
  // Two people, since both requests are worked on at the same time.
  const other = JSON.stringify({ user: user + 1, tool: 'true' });
  const [one, two] = [body, other].map((content) => post([`Content-Length: ${content.length}`], content));
  const connection = new RawConnection(service.port).say(`${health}${one}${health}${two}${health}`);
  const text = await connection.heard(/exitCode[\s\S]*exitCode[\s\S]* 204 /);
  expect(statusesIn(text)).toEqual([204, 200, 204, 200, 204]);
  connection.destroy();
  await stillServes(before + 2);
});

test('after garbage behind a good request no answer is given that could be taken for that request’s', async () => {
  const text = await new RawConnection(service.port).say(health, 'garbage\r\n\r\n').ended();
  expect([[], [204], [204, 400], [400]]).toContainEqual(statusesIn(text));
  const before = runs();
  const run = post([`Content-Length: ${body.length}`], body);
  const after = await new RawConnection(service.port).say(`${run}garbage\r\n\r\n`).ended();
  expect([[], [200], [200, 400]]).toContainEqual(statusesIn(after));
  await eventually('the run that was asked for is over', () => runs() === before + 1);
  await stillServes(before + 1);
});

test('a client that closes its sending half, or in the middle of head or body, harms nobody', async () => {
  const before = runs();
  const whole = post([`Content-Length: ${body.length}`], body);
  for (const length of [1, 20, whole.length - body.length, whole.length - 1]) {
    const connection = new RawConnection(service.port, true);
    connection.socket.end(whole.slice(0, length));
    expect(statusesIn(await connection.ended()).every((status) => status === 400)).toBe(true);
  }
  await stillServes(before);
  const half = new RawConnection(service.port, true);
  half.socket.end(whole);
  await half.ended();
  // It was asked for in full: it is done, heard or not.
  await eventually('the run is over', () => runs() === before + 2);
});

test('nothing of all this is in the log or the audit', () => {
  expect(service.log.join('\n') + service.auditText.join('\n')).not.toContain(canary);
  expect(service.log.filter((line) => line.includes('"level":50'))).toEqual([]);
});
