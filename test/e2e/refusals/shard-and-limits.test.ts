import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { processesOf } from '../../support/processes.ts';
import { Service } from '../../support/service.ts';
import { homeOf, spaceOf, systemTools, uidOf, withoutCounts } from '../../support/user.ts';

const [first, last] = [110_500, 110_510] as const;
let service: Service;

beforeAll(async () => {
  // A mebibyte of address space is less than any program's own pages and libraries take.
  const limits = { RUNNER_MAX_ADDRESS_BYTES: '1000000', RUNNER_USER_RANGE: `${first}-${last}` };
  service = await Service.start({
    settings: { ...systemTools('touch', 'sh'), ...limits, ...withoutCounts },
  });
});
afterAll(() => service.stop());

test('a person of another shard is 421, audited, and gets no space', async () => {
  for (const user of [first - 1, last + 1, 0, 1_000_000]) {
    const { status, body } = await service.exec(user, 'touch', ['x']);
    expect([status, body.error], String(user)).toEqual([421, 'wrong_shard']);
    expect(Object.keys(body).sort()).toEqual(['error', 'message', 'operationId']);
    const line = await service.audited(({ operationId }) => operationId === body.operationId);
    expect(line).toMatchObject({ action: 'exec', user, status: 'denied', reason: 'wrong_shard' });
    expect(existsSync(spaceOf(service, user))).toBe(false);
  }
});

test('the shard is looked at before the tool', async () => {
  expect((await service.exec(last + 1, 'unknown')).status).toBe(421);
  expect((await service.exec(last, 'unknown')).status).toBe(403);
});

test('limits that no tool can start under: it has not run, and never runs without them', async () => {
  for (const user of [first, last]) {
    const { status, body } = await service.exec(user, 'git', ['init', 'ran']);
    expect([status, body.error]).toEqual([500, 'exec_failed']);
    expect(body.details).toEqual({ step: 'exec', errno: 'ENOMEM' });
    const line = await service.audited(({ operationId }) => operationId === body.operationId);
    expect(line).toMatchObject({ user, tool: 'git', status: 'error', reason: 'exec_failed' });
    // A smaller program may be loaded, but then its libraries are not: that is its own loader's end.
    const small = await service.exec(user, 'touch', ['ran']);
    if (small.status === 200) expect(small.body).toMatchObject({ exitCode: 127 });
    else expect(small.body).toMatchObject({ error: 'exec_failed', details: { step: 'exec', errno: 'ENOMEM' } });
    // The person is in the shard: the space is there, and only the run failed.
    expect(existsSync(homeOf(service, user))).toBe(true);
    expect(existsSync(join(homeOf(service, user), 'ran'))).toBe(false);
    expect(processesOf(uidOf(user))).toEqual([]);
  }
});
