import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Operation } from '../../../protocol/operation.ts';
import { operations } from '../../../protocol/operations/index.ts';
import { operationId } from '../../../protocol/values.ts';
import { execResult } from './fake-worker.ts';
import { GatewayUnderTest } from './gateway-under-test.ts';

let gateway: GatewayUnderTest;

beforeEach(async () => {
  gateway = await GatewayUnderTest.start();
});

afterEach(() => gateway.stop());

describe('a mutation that comes out', () => {
  test('answers the result, the streams as text and the operation id', async () => {
    gateway.worker.onRequest = (link, { id }) => link.succeed(id, 'out', 'err');
    const response = await gateway.post('/v1/exec', { user: 7, tool: 'git' });
    const body = (await response.json()) as Record<string, unknown>;
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(body).toEqual({ ...execResult, stdout: 'out', stderr: 'err', operationId: expect.any(String) });
    expect(operationId.safeParse(body['operationId']).success).toBe(true);
    expect(response.headers.get('operation-id')).toBe(body['operationId']);
    expect(gateway.audit.size).toBe(0);
  });

  test('sends the checked fields as they are, with the id that the caller gets', async () => {
    const fields = { user: 7, tool: 'evo-workflow', args: ['a', '한글'], dir: 'd', env: ['K=V'], agent: 'x' };
    const answered = gateway.post('/v1/exec', fields);
    const link = await gateway.workerLink();
    const request = await link.requests.next();
    expect(request.operation).toBe('exec');
    expect(request.params).toEqual(fields);
    link.succeed(request.id);
    expect((await answered).headers.get('operation-id')).toBe(request.operationId);
  });

  test('takes null in an optional field as absent, and an empty agent', async () => {
    const answered = gateway.post('/v1/exec', { user: 7, tool: 'git', args: null, dir: null, env: null, agent: '' });
    const link = await gateway.workerLink();
    const request = await link.requests.next();
    expect(request.params).toEqual({ user: 7, tool: 'git', agent: '' });
    link.succeed(request.id);
    expect((await answered).status).toBe(200);
  });

  test('serves many at once and keeps them apart', async () => {
    gateway.worker.onRequest = (link, { id, params }) => link.succeed(id, String((params as { user: number }).user));
    const users = Array.from({ length: 100 }, (_, user) => user);
    const bodies = await Promise.all(
      users.map(async (user) => (await gateway.post('/v1/exec', { user, tool: 'git' })).json()),
    );
    expect(bodies.map((body) => (body as { stdout: string }).stdout)).toEqual(users.map(String));
  });
});

describe("the worker's refusals", () => {
  test('are answered with the status of their code, the id and the details, and audited by the worker alone', async () => {
    const details = { action: 'exec', operationId: 'x' };
    gateway.worker.onRequest = (link, { id }) => link.connection.reply(id, { ok: false, error: 'busy', details });
    const response = await gateway.post('/v1/exec', { user: 7, tool: 'git' });
    expect(response.status).toBe(409);
    expect(await response.json()).toEqual({
      error: 'busy',
      message: 'Another operation of this user is under way.',
      operationId: response.headers.get('operation-id'),
      details,
    });
    expect(gateway.audit.size).toBe(0);
  });

  test('lose details that do not fit their code', async () => {
    const details = { secret: 'planted' };
    gateway.worker.onRequest = (link, { id }) => link.connection.reply(id, { ok: false, error: 'busy', details });
    const body = await (await gateway.post('/v1/exec', { user: 7, tool: 'git' })).text();
    expect(JSON.parse(body)).not.toHaveProperty('details');
    expect(gateway.logged).toContain('wrong details');
    expect(body + gateway.logged).not.toContain('planted');
  });

  test('with a code that the operation cannot have are internal', async () => {
    gateway.worker.onRequest = (link, { id }) => link.connection.reply(id, { ok: false, error: 'unauthenticated' });
    const response = await gateway.post('/v1/exec', { user: 7, tool: 'git' });
    expect(response.status).toBe(500);
    expect(await response.json()).toMatchObject({ error: 'internal', operationId: expect.any(String) });
  });
});

test('a result of a wrong shape is internal, logged, and does not get out', async () => {
  gateway.worker.onRequest = (link, { id }) =>
    link.connection.reply(id, {
      ok: true,
      result: { ...execResult, planted: 1 },
      streams: { stdout: { bytes: 0, cut: false }, stderr: { bytes: 0, cut: false } },
    });
  const response = await gateway.post('/v1/exec', { user: 7, tool: 'git' });
  const body = await response.text();
  expect(response.status).toBe(500);
  expect(JSON.parse(body)).toMatchObject({ error: 'internal', operationId: expect.any(String) });
  expect(body).not.toContain('planted');
  expect(gateway.logged).toContain('wrong shape');
});

describe('a read', () => {
  const reading: Operation = { ...operations.exec, effect: 'read' };

  beforeEach(async () => {
    await gateway.stop();
    gateway = await GatewayUnderTest.start({ table: { ...operations, exec: reading } });
  });

  test('has no operation id', async () => {
    gateway.worker.onRequest = (link, { id, operationId: minted }) => link.succeed(id, String(minted));
    const response = await gateway.post('/v1/exec', { user: 7, tool: 'git' });
    expect(response.headers.get('operation-id')).toBeNull();
    expect(await response.json()).toEqual({ ...execResult, stdout: 'undefined', stderr: '' });
  });

  test('is repeated once when it was cut off', async () => {
    const answered = gateway.post('/v1/exec', { user: 7, tool: 'git' });
    const first = await gateway.workerLink();
    await first.requests.next();
    first.socket.destroy();
    const second = await gateway.workerLink();
    second.succeed((await second.requests.next()).id, 'again');
    expect(await (await answered).json()).toMatchObject({ stdout: 'again' });
  });

  test('is worker_unavailable when it was cut off twice', async () => {
    const answered = gateway.post('/v1/exec', { user: 7, tool: 'git' });
    for (let cut = 0; cut < 2; cut += 1) {
      const link = await gateway.workerLink();
      await link.requests.next();
      link.socket.destroy();
    }
    expect((await answered).status).toBe(503);
    expect(await (await answered).json()).toMatchObject({ error: 'worker_unavailable' });
  });
});

test('something unforeseen is internal without detail, logged without its message, and audited', async () => {
  await gateway.stop();
  gateway = await GatewayUnderTest.start({
    deadlineOf: () => {
      throw new Error('planted');
    },
  });
  const response = await gateway.post('/v1/exec', { user: 7, tool: 'git' });
  expect(response.status).toBe(500);
  expect(await response.json()).toEqual({ error: 'internal', message: 'Something unforeseen went wrong.' });
  expect(await gateway.audit.next()).toMatchObject({ action: 'exec', user: 7, status: 'error', reason: 'internal' });
  expect(gateway.logged).toContain('invoke.ts');
  expect(gateway.logged).not.toContain('planted');
});

test('nothing of a request gets into the log or the audit', async () => {
  gateway.worker.onRequest = (link, { id }) => link.succeed(id, 'planted', 'planted');
  const fields = { user: 7, tool: 'planted', args: ['planted'], dir: 'planted', env: ['PLANTED=planted'] };
  const headers = { 'X-Planted': 'planted', 'Content-Type': 'planted' };
  expect((await gateway.post('/v1/exec?planted', fields, headers)).status).toBe(200);
  expect((await gateway.post('/v1/exec?planted', { ...fields, agent: 'planted' }, headers)).status).toBe(400);
  expect((await gateway.post('/v1/exec?planted', { ...fields, planted: 1 }, headers)).status).toBe(400);
  expect((await gateway.post('/planted', fields, headers)).status).toBe(404);
  expect((await gateway.post('/v1/exec', fields, { Authorization: 'Bearer planted' })).status).toBe(401);
  const link = await gateway.workerLink();
  gateway.worker.onRequest = () => link.say({ kind: 'planted' });
  expect((await gateway.post('/v1/exec', fields, headers)).status).toBe(502);
  const lines = [];
  while (gateway.audit.size > 0) lines.push(await gateway.audit.next());
  expect(lines.map((line) => line['reason'])).toEqual([
    'bad_agent',
    'bad_request',
    'unauthenticated',
    'protocol',
    'uncertain',
  ]);
  expect(gateway.logged).toContain('answered');
  expect(JSON.stringify(lines) + gateway.logged).not.toMatch(/planted|Bearer/i);
});
