import { readdirSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { processesOf, treeOf } from '../../support/processes.ts';
import { Service } from '../../support/service.ts';
import { systemTools } from '../../support/user.ts';
import { eventually } from '../../support/wait.ts';

const users = Array.from({ length: 8 }, (_, index) => 300_400 + index);
let service: Service;

beforeAll(async () => {
  service = await Service.start({ settings: systemTools('true', 'sh') });
});
afterAll(() => service.stop());

const descriptors = () => {
  const count = (part: 'worker' | 'gateway' | 'spawner' | 'init') =>
    readdirSync(`/proc/${service.part(part).pid}/fd`).length;
  return { worker: count('worker'), gateway: count('gateway'), spawner: count('spawner'), init: count('init') };
};

test('1,000 short runs leave no process, no zombie and no descriptor', async () => {
  const warmUp = await Promise.all(users.map((user) => service.exec(user, 'true')));
  expect(warmUp.map(({ status }) => status)).toEqual(users.map(() => 200));
  const before = { descriptors: descriptors(), processes: treeOf(service.process.pid ?? -1).length };
  const work = users.map(async (user) => {
    for (let run = 0; run < 125; run += 1) {
      const { status, body } = await service.exec(user, 'true');
      if (status !== 200 || body.exitCode !== 0) throw new Error(JSON.stringify(body));
    }
  });
  await Promise.all(work);
  for (const user of users) expect(processesOf(20_000 + user)).toEqual([]);
  await eventually('as many processes as before', () => treeOf(service.process.pid ?? -1).length === before.processes);
  const after = descriptors();
  for (const part of ['worker', 'gateway', 'spawner', 'init'] as const) {
    // The gateway keeps a few HTTP connections of this test's own open.
    expect(after[part], part).toBeLessThanOrEqual(before.descriptors[part] + (part === 'gateway' ? users.length : 0));
  }
  expect(
    service.audit.filter(({ action, status }) => action === 'exec' && status === 'ok').length,
  ).toBeGreaterThanOrEqual(1_000);
});
