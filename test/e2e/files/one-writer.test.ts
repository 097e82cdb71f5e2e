import { afterAll, beforeAll, expect, test } from 'vitest';
import { ask, contentOf } from '../../support/files.ts';
import { holdRun } from '../../support/held-run.ts';
import { Service } from '../../support/service.ts';
import { systemTools } from '../../support/user.ts';

let service: Service;
let next = 451_000;

beforeAll(async () => {
  service = await Service.start({ settings: { ...systemTools('sh'), RUNNER_USER_QUOTA_BYTES: '10' } });
});
afterAll(() => service.stop());

const write = (user: number, path: string, content: string) => ask(service, 'files/write', { user, path, content });

test('during a run changes are busy at once, and looking is served', async () => {
  const user = next++;
  expect((await write(user, 'f', '1')).status).toBe(200);
  const held = await holdRun(service, user);
  const startedAt = performance.now();
  const refused = [
    await write(user, 'f', '2'),
    await ask(service, 'files/delete', { user, path: 'f' }),
    await ask(service, 'workspace/reset', { user }),
  ];
  const seen = [
    await ask(service, 'files/list', { user }),
    await ask(service, 'files/read', { user, path: 'f' }),
    await service.client.post('/v1/usage', { user }),
  ];
  expect(performance.now() - startedAt).toBeLessThan(30_000);
  held.release();
  const { operationId } = (await held.answer).body;
  for (const { status, body } of refused)
    expect([status, body.error, body.details]).toEqual([409, 'busy', { action: 'exec', operationId }]);
  expect(seen.map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(await contentOf(service, user, 'f')).toBe('1');
  const line = await service.audited(({ operationId: id }) => id === refused[2]?.body.operationId);
  expect(line).toMatchObject({ action: 'workspace.reset', user, status: 'busy', reason: 'busy' });
});

test('of twenty changes at once those that were not busy were done, whole', async () => {
  const user = next++;
  const answers = await Promise.all(Array.from({ length: 20 }, (_, at) => write(user, `${at}`, '')));
  const statuses = answers.map(({ status }) => status);
  expect(new Set(statuses)).toEqual(new Set([200, 409]));
  const { text } = await ask(service, 'files/list', { user });
  const { entries } = JSON.parse(text) as { entries: { kind: string }[] };
  expect(entries.filter(({ kind }) => kind === 'file')).toHaveLength(statuses.filter((is) => is === 200).length);
});

test('who is at the limit writes nothing more; a delete or a reset frees, and is never refused', async () => {
  const user = next++;
  const usage = async () => JSON.parse((await service.client.post('/v1/usage', { user })).text) as unknown;
  expect((await write(user, 'a', '123456789')).status).toBe(200);
  expect(await usage()).toMatchObject({ bytes: 9, over: false });
  expect((await write(user, 'b', '0')).status).toBe(200);
  expect(await usage()).toMatchObject({ bytes: 10, over: true });
  for (const refused of [await write(user, 'c', ''), await write(user, 'a', '')]) {
    expect([refused.status, refused.body.error]).toEqual([507, 'disk_quota']);
    const line = await service.audited(({ operationId }) => operationId === refused.body.operationId);
    expect(line).toMatchObject({ action: 'files.write', status: 'denied', reason: 'disk_quota' });
  }
  expect((await ask(service, 'files/delete', { user, path: 'b' })).status).toBe(200);
  expect(await usage()).toMatchObject({ bytes: 9, files: 1, over: false });
  expect((await write(user, 'b', '12345')).status).toBe(200);
  expect((await service.exec(user, 'sh', ['-c', 'true'])).body.error).toBe('disk_quota');
  expect((await ask(service, 'workspace/reset', { user })).status).toBe(200);
  expect(await usage()).toMatchObject({ bytes: 0, files: 0 });
  expect((await write(user, 'c', '1')).status).toBe(200);
});
