import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { statusOf } from '../../support/keyed.ts';
import { processesOf } from '../../support/processes.ts';
import { Service } from '../../support/service.ts';
import { homeOf, systemTools, uidOf } from '../../support/user.ts';
import { eventually } from '../../support/wait.ts';

let service: Service;
beforeAll(async () => {
  service = await Service.start({ settings: systemTools('sh') });
});
afterAll(() => service.stop());

let lastUser = 441_000;
const newUser = (): number => lastUser++;
const countOf = (user: number): string => join(homeOf(service, user), 'count');
const startKeyed = (key: string, user: number) =>
  service.client.post(
    '/v1/process/start',
    { workspaceId: String(user), tool: 'sh', args: ['-c', 'echo ran >>count; exec sleep 1000'] },
    { 'idempotency-key': key },
  );
const gone = (user: number) => eventually('nothing is left', () => processesOf(uidOf(user)).length === 0);

test.each(['SIGKILL', 'SIGTERM'] as const)(
  'a start that was answered is on record in the next life (%s), and is not begun again under its key',
  async (signal) => {
    const user = newUser();
    const first = await startKeyed('answered', user);
    expect(first.status, first.text).toBe(200);
    await eventually('its effect', () => existsSync(countOf(user)) && readFileSync(countOf(user), 'utf8') === 'ran\n');
    const before = service.part('worker').pid;
    process.kill(before, signal);
    await gone(user);
    await service.replaced('worker', before);
    const status = await statusOf(service, { user, idempotencyKey: 'answered' });
    expect(status.body).toMatchObject({
      operationId: first.headers['operation-id'],
      action: 'process.start',
      state: 'finished',
      outcome: 'ok',
      httpStatus: 200,
    });
    expect(status.body).not.toHaveProperty('result');
    const again = await startKeyed('answered', user);
    expect(again).toMatchObject({
      status: 200,
      headers: { 'idempotency-replayed': 'true', 'operation-id': first.headers['operation-id'] },
      body: { outputExpired: true, replayed: true },
    });
    // It tells nothing that is not known any more, and nothing that it never had.
    for (const field of ['processId', 'exitCode', 'timedOut']) expect(again.body).not.toHaveProperty(field);
    const listed = await service.client.post('/v1/process/list', { workspaceId: String(user) });
    expect(JSON.parse(listed.text)).toEqual({ processes: [] });
    expect(processesOf(uidOf(user))).toEqual([]);
    expect(readFileSync(countOf(user), 'utf8')).toBe('ran\n');
  },
);

test('a start in whose middle the worker dies is interrupted, and is not begun under its key', async () => {
  const user = newUser();
  // Its space is there, and nothing of it runs.
  expect((await service.exec(user, 'sh', ['-c', 'exit 0'])).body).toMatchObject({ exitCode: 0 });
  const before = service.part('worker').pid;
  const spawner = service.part('spawner').pid;
  process.kill(spawner, 'SIGSTOP');
  const answer = startKeyed('cut', user);
  await eventually('it is on record', async () => {
    const { body } = await statusOf(service, { user, idempotencyKey: 'cut' });
    return body.state === 'running';
  });
  expect(await startKeyed('cut', user)).toMatchObject({ status: 409, body: { error: 'operation_running' } });
  process.kill(before, 'SIGKILL');
  const told = await answer;
  expect(told).toMatchObject({ status: 502, body: { error: 'uncertain' } });
  await service.replaced('worker', before);
  await gone(user);
  expect(await statusOf(service, { user, idempotencyKey: 'cut' })).toMatchObject({
    status: 200,
    body: { operationId: told.body.operationId, state: 'interrupted', httpStatus: 502, error: 'uncertain' },
  });
  expect(await startKeyed('cut', user)).toMatchObject({
    status: 409,
    body: { error: 'operation_interrupted', details: { state: 'interrupted', operationId: told.body.operationId } },
  });
  expect(processesOf(uidOf(user))).toEqual([]);
  expect(existsSync(countOf(user))).toBe(false);
});
