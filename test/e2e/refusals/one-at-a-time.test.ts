import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { holdRun } from '../../support/held-run.ts';
import { Service } from '../../support/service.ts';
import { homeOf, spaceOf, systemTools } from '../../support/user.ts';
import { eventually } from '../../support/wait.ts';

const [first, second, third] = [110_300, 110_301, 110_302] as const;
let service: Service;

beforeAll(async () => {
  service = await Service.start({ settings: { ...systemTools('sh', 'touch'), RUNNER_MAX_RUNS: '2' } });
});
afterAll(() => service.stop());

test('a second run of the same person is busy, telling what holds the lock; it does nothing', async () => {
  const held = await holdRun(service, first);
  const { status, body } = await service.exec(first, 'touch', ['second']);
  expect(status).toBe(409);
  expect(body.error).toBe('busy');
  expect(Object.keys(body).sort()).toEqual(['details', 'error', 'message', 'operationId']);
  const line = await service.audited(({ operationId }) => operationId === body.operationId);
  expect(line).toMatchObject({ action: 'exec', user: first, tool: 'touch', status: 'busy', reason: 'busy' });
  held.release();
  const done = await held.answer;
  expect(done.status).toBe(200);
  expect(body.details).toEqual({ action: 'exec', operationId: done.body.operationId });
  expect(body.operationId).not.toBe(done.body.operationId);
  expect(existsSync(join(homeOf(service, first), 'second'))).toBe(false);
});

test('the lock is free again as soon as the run is answered, also after a failure', async () => {
  expect((await service.exec(first, 'touch', ['third'])).status).toBe(200);
  expect((await service.exec(first, 'sh', ['-c', 'exit 3'])).body.exitCode).toBe(3);
  expect((await service.exec(first, 'touch', ['x'], { dir: 'missing' })).status).toBe(404);
  expect((await service.exec(first, 'touch', ['x'.repeat(200_000)])).status).toBe(500);
  expect((await service.exec(first, 'touch', ['fourth'])).status).toBe(200);
  expect(existsSync(join(homeOf(service, first), 'fourth'))).toBe(true);
});

test('another person is not busy', async () => {
  const held = await holdRun(service, first);
  expect((await service.exec(second, 'touch', ['beside'])).status).toBe(200);
  held.release();
  expect((await held.answer).status).toBe(200);
});

test('of twenty requests at once for one person one runs, the others are busy or overloaded', async () => {
  const script = 'echo run >>runs; sleep 0.2';
  const answers = await Promise.all(Array.from({ length: 20 }, () => service.exec(first, 'sh', ['-c', script])));
  const statuses = answers.map(({ status }) => status);
  expect(new Set(statuses)).toEqual(new Set([200, 409]));
  const ran = statuses.filter((status) => status === 200).length;
  const { body } = await service.exec(first, 'sh', ['-c', 'wc -l <runs']);
  expect(Number(body.stdout)).toBe(ran);
});

test('more runs than the operator allows are overloaded at once, make no space, and leave room for health', async () => {
  const holders = [await holdRun(service, first), await holdRun(service, second)];
  expect(existsSync(spaceOf(service, third))).toBe(false);
  const started = performance.now();
  const { status, body } = await service.exec(third, 'touch', ['x']);
  expect(performance.now() - started).toBeLessThan(5_000);
  expect([status, body.error]).toEqual([503, 'overloaded']);
  expect(Object.keys(body).sort()).toEqual(['error', 'message', 'operationId']);
  const line = await service.audited(({ operationId }) => operationId === body.operationId);
  expect(line).toMatchObject({ action: 'exec', user: third, status: 'denied', reason: 'overloaded' });
  expect(existsSync(spaceOf(service, third))).toBe(false);
  expect((await service.client.get('/healthz')).status).toBe(204);
  for (const { release } of holders) release();
  for (const { answer } of holders) expect((await answer).status).toBe(200);
  await eventually('there is room again', async () => (await service.exec(third, 'touch', ['x'])).status === 200);
});
