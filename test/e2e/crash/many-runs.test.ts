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

const parts = ['worker', 'gateway', 'spawner', 'init'] as const;

/** What the service holds at the moment: processes, and descriptors of each part. */
const held = () => {
  const descriptorsOf = (part: (typeof parts)[number]) => readdirSync(`/proc/${service.part(part).pid}/fd`).length;
  return new Map<string, number>([
    ['processes', treeOf(service.process.pid ?? -1).length],
    ...parts.map((part) => [part, descriptorsOf(part)] as const),
  ]);
};
const nothingOfUsers = () => users.every((user) => processesOf(20_000 + user).length === 0);

test('1,000 short runs leave no process, no zombie and no descriptor', async () => {
  const warmUp = await Promise.all(users.map((user) => service.exec(user, 'true')));
  expect(warmUp.map(({ status }) => status)).toEqual(users.map(() => 200));
  await eventually('the warm-up is over', nothingOfUsers);
  const before = held();
  const work = users.map(async (user) => {
    for (let run = 0; run < 125; run += 1) {
      const { status, body } = await service.exec(user, 'true');
      if (status !== 200 || body.exitCode !== 0) throw new Error(JSON.stringify(body));
    }
  });
  await Promise.all(work);
  // The gateway keeps a few HTTP connections of this test's own open.
  const allowance = (what: string) => (what === 'gateway' ? users.length : 0);
  let last = held();
  // What a space holds may still be counted anew: the spawner accepts a connection and forks for that, too.
  await eventually('no more is held than before', () => {
    last = held();
    return nothingOfUsers() && [...before].every(([what, count]) => (last.get(what) ?? 0) <= count + allowance(what));
  }).catch((error) => {
    expect(last).toEqual(before);
    throw error;
  });
  expect(
    service.audit.filter(({ action, status }) => action === 'exec' && status === 'ok').length,
  ).toBeGreaterThanOrEqual(1_000);
});
