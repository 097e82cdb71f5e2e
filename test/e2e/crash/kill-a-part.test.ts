import { afterEach, beforeEach, expect, test } from 'vitest';
import { allProcesses, treeOf } from '../../support/processes.ts';
import { Service } from '../../support/service.ts';
import { startTree, treeGone } from '../../support/tree-run.ts';
import { systemTools } from '../../support/user.ts';
import { eventually } from '../../support/wait.ts';

const users = [300_100, 300_101, 300_102] as const;
let service: Service;

beforeEach(async () => {
  service = await Service.start({ settings: systemTools('sh', 'id') });
});
afterEach(() => service.destroy());

const startTrees = () => Promise.all(users.map((user) => startTree(service, user)));
/** Longer than the service promises for worker and gateway, which processes.test.ts beside this holds it to. */
const goneMs = 15_000;
const allGone = () => Promise.all(users.map((user) => treeGone(user, goneMs)));

/** The next request of each user is served as if nothing had been. */
const servesAgain = async () => {
  await service.healthy();
  for (const user of users) {
    const answer = await eventually('the user is not locked any more', async () => {
      const found = await service.exec(user, 'id', ['-u']);
      // Nor has anything run while there is no spawner yet.
      return found.status !== 409 && found.status !== 503 && found;
    });
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body.stdout).toBe(`${20_000 + user}\n`);
  }
};

test('the worker is killed: runs end, callers are told that nobody knows, another worker serves', async () => {
  const runs = await startTrees();
  const before = service.part('worker').pid;
  process.kill(before, 'SIGKILL');
  await allGone();
  for (const run of runs) {
    const answer = await run.answer;
    expect(answer).toMatchObject({ status: 502, body: { error: 'uncertain' } });
  }
  for (const user of users) await service.audited((line) => line['user'] === user && line.status === 'uncertain');
  expect(service.audit.filter(({ status }) => status === 'uncertain')).toHaveLength(users.length);
  await servesAgain();
  expect(service.part('worker').pid).not.toBe(before);
  const starts = () => service.audit.filter(({ action }) => action === 'worker.started').length;
  await eventually('the second start is audited', () => starts() >= 2);
  expect(starts()).toBe(2);
});

test('while there is no worker, health says so and mutations are refused without effect', async () => {
  const worker = service.part('worker').pid;
  process.kill(worker, 'SIGSTOP');
  process.kill(worker, 'SIGKILL');
  const refused = await eventually('a refusal', async () => {
    const answer = await service.exec(users[0], 'id');
    return answer.status === 503 && answer;
  });
  expect(refused.body.error).toBe('worker_unavailable');
  await servesAgain();
});

test('the gateway is killed: runs end, the truth is in the audit, another gateway serves', async () => {
  const runs = await startTrees();
  const worker = service.part('worker').pid;
  process.kill(service.part('gateway').pid, 'SIGKILL');
  await allGone();
  for (const run of runs) expect(await run.answer).toBe('broken');
  for (const user of users) {
    const line = await service.audited((found) => found['user'] === user);
    expect(line).toMatchObject({ action: 'exec', tool: 'sh', status: 'error', reason: 'link_lost' });
    expect(line).not.toHaveProperty('exit');
  }
  await servesAgain();
  expect(service.part('worker').pid, 'the worker lived on').toBe(worker);
});

test('the spawner is killed: runs end, callers are told that nobody knows, another spawner serves', async () => {
  const runs = await startTrees();
  const before = service.part('spawner').pid;
  process.kill(before, 'SIGKILL');
  await allGone();
  for (const run of runs) expect(await run.answer).toMatchObject({ status: 502, body: { error: 'uncertain' } });
  await servesAgain();
  expect(service.part('spawner').pid).not.toBe(before);
});

test('a supervisor is killed: its run ends and only its caller is told so; others go on', async () => {
  const [first, second] = await startTrees();
  if (!first || !second) throw new Error('no runs');
  const supervisor = allProcesses().find(({ pid }) => pid === first.supervisor);
  expect(supervisor?.uids[0], 'it is a supervisor').toBe(0x40000000 + first.supervisor);
  process.kill(first.supervisor, 'SIGKILL');
  expect(await first.answer).toMatchObject({ status: 502, body: { error: 'uncertain' } });
  await treeGone(first.user, goneMs);
  expect(treeOf(second.supervisor).length, 'another user’s run goes on').toBeGreaterThan(4);
  const again = await eventually('its user is free again', async () => {
    const answer = await service.exec(first.user, 'id', ['-u']);
    return answer.status !== 409 && answer;
  });
  expect(again.body.stdout).toBe(`${20_000 + first.user}\n`);
  expect(await service.exec(second.user, 'id')).toMatchObject({ status: 409, body: { error: 'busy' } });
});

test('spawner and supervisors are killed at once: nothing is left all the same', async () => {
  const runs = await startTrees();
  const spawner = service.part('spawner').pid;
  process.kill(spawner, 'SIGSTOP');
  for (const { supervisor } of runs) process.kill(supervisor, 'SIGKILL');
  process.kill(spawner, 'SIGKILL');
  await allGone();
  for (const run of runs) expect(await run.answer).toMatchObject({ status: 502, body: { error: 'uncertain' } });
  await servesAgain();
});

test('worker, spawner and supervisors are killed at once: init ends the left-overs before another worker starts', async () => {
  const runs = await startTrees();
  const victims = [
    service.part('worker').pid,
    service.part('spawner').pid,
    ...runs.map(({ supervisor }) => supervisor),
  ];
  for (const pid of victims) process.kill(pid, 'SIGSTOP');
  for (const pid of victims) process.kill(pid, 'SIGKILL');
  await allGone();
  for (const run of runs) expect(await run.answer).toMatchObject({ status: 502, body: { error: 'uncertain' } });
  await servesAgain();
});

test('init is killed: everything of it is gone', async () => {
  const runs = await startTrees();
  const parts = treeOf(service.process.pid ?? -1).map(({ pid }) => pid);
  expect(parts.length).toBeGreaterThan(10);
  process.kill(service.part('init').pid, 'SIGKILL');
  await allGone();
  for (const run of runs) expect(await run.answer).not.toMatchObject({ status: 200 });
  await eventually(
    'worker, gateway and spawner are gone',
    () => allProcesses().every(({ pid, state }) => !parts.includes(pid) || state === 'Z'),
    goneMs,
  );
});
