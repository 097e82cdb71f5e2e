import { chownSync, mkdirSync, rmSync, truncateSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { holdRun } from '../../support/held-run.ts';
import { Service } from '../../support/service.ts';
import { homeOf, systemTools, uidOf } from '../../support/user.ts';
import { eventually } from '../../support/wait.ts';

let service: Service;
let next = 111_700;

beforeAll(async () => {
  service = await Service.start({ settings: { ...systemTools('sh', 'touch'), RUNNER_USER_QUOTA_BYTES: '10' } });
});
afterAll(() => service.stop());

const sh = (user: number, script: string) => service.exec(user, 'sh', ['-c', script]);
const usageOf = async (user: number) => JSON.parse((await service.client.post('/v1/usage', { user })).text) as unknown;

test('who is at the limit runs nothing more', async () => {
  const user = next++;
  expect((await sh(user, 'printf 123456789 >f')).status).toBe(200);
  expect(await usageOf(user)).toMatchObject({ bytes: 9, limitBytes: 10, over: false });
  expect((await sh(user, 'printf 1 >g')).status).toBe(200);
  expect(await usageOf(user)).toMatchObject({ bytes: 10, limitBytes: 10, over: true });

  const { status, body } = await service.exec(user, 'touch', ['made']);
  expect([status, body.error]).toEqual([507, 'disk_quota']);
  const line = await service.audited(({ operationId }) => operationId === body.operationId);
  expect(line).toMatchObject({ action: 'exec', user, tool: 'touch', args: 1, status: 'denied', reason: 'disk_quota' });
  expect(await usageOf(user)).toMatchObject({ files: 2 });

  unlinkSync(join(homeOf(service, user), 'g'));
  // Nothing of the service's was told of that: what was counted is good for its time.
  expect((await service.exec(user, 'touch', ['made'])).status).toBe(507);
});

test('a run that oversteps the limit is the last one', async () => {
  const user = next++;
  expect((await sh(user, 'head -c 1000 /dev/zero >f')).status).toBe(200);
  expect((await sh(user, 'true')).body.error).toBe('disk_quota');
});

test('hiding it does not help', async () => {
  for (const hide of [
    'mkdir d; printf 1234567890 >d/f; chmod 0 d',
    'printf 1234567890 >../tmp/f; chmod 0 ../tmp',
    'printf 1234567890 >../f',
    'truncate -s 10 f',
  ]) {
    const user = next++;
    expect((await sh(user, hide)).body.exitCode, hide).toBe(0);
    expect((await sh(user, 'true')).body.error, hide).toBe('disk_quota');
  }
});

test('what can’t be counted is not below the limit', async () => {
  const user = next++;
  expect((await sh(user, 'mkdir d')).status).toBe(200);
  const foreign = join(homeOf(service, user), 'd', 'theirs');
  mkdirSync(foreign, { mode: 0o700 });
  chownSync(foreign, uidOf(user) + 1, uidOf(user) + 1);
  // What was counted by itself after the run may be kept: another run drops it.
  await sh(user, 'true');
  const { status, body } = await service.client.post('/v1/usage', { user });
  expect([status, body.error]).toEqual([500, 'usage_failed']);
  expect((await sh(user, 'true')).body.error).toBe('usage_failed');
  rmSync(foreign, { recursive: true });
  // A count that has met it may be under way.
  await eventually('it is counted anew', async () => (await sh(user, 'true')).status === 200);
});

test('what others put there counts once the run is gone, and while it is not a second one is busy', async () => {
  const user = next++;
  expect((await sh(user, 'true')).status).toBe(200);
  const held = await holdRun(service, user);
  try {
    expect((await sh(user, 'true')).body.error).toBe('busy');
    writeFileSync(join(homeOf(service, user), 'large'), '');
    truncateSync(join(homeOf(service, user), 'large'), 1_000);
  } finally {
    held.release();
  }
  expect((await held.answer).status).toBe(200);
  expect((await sh(user, 'true')).body.error).toBe('disk_quota');
});

test('a quota of 0 is none', async () => {
  const free = await Service.start({ settings: { ...systemTools('sh'), RUNNER_USER_QUOTA_BYTES: '0' } });
  try {
    const user = next++;
    const big = ['-c', 'for n in $(seq 12); do truncate -s 1G $n; done'];
    expect((await free.exec(user, 'sh', big)).body.exitCode).toBe(0);
    expect((await free.exec(user, 'sh', ['-c', 'true'])).status).toBe(200);
    const { body, text } = await free.client.post('/v1/usage', { user });
    expect(body).not.toHaveProperty('error');
    expect(JSON.parse(text)).toMatchObject({ bytes: 12 * 1024 ** 3, limitBytes: 0, over: false });
  } finally {
    await free.stop();
  }
});
