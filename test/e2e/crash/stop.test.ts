import { connect } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { holdRun } from '../../support/held-run.ts';
import { allProcesses, treeOf } from '../../support/processes.ts';
import { Service } from '../../support/service.ts';
import { startTree, treeGone } from '../../support/tree-run.ts';
import { systemTools } from '../../support/user.ts';
import { eventually } from '../../support/wait.ts';

const user = 300_200;
let service: Service;

const start = async () => {
  service = await Service.start({ settings: systemTools('sh', 'id') });
  return service;
};
afterEach(() => service.destroy());

/** All that belongs to the service now. */
const parts = () => treeOf(service.process.pid ?? -1).map(({ pid }) => pid);
const partsGone = (pids: readonly number[]) =>
  eventually('every part is gone', () => allProcesses().every(({ pid }) => !pids.includes(pid)), 4_000);

/** Signals the whole process group, as a terminal does. */
const signalGroup = (signal: NodeJS.Signals) => process.kill(-(service.process.pid ?? Number.NaN), signal);

test.each(['SIGINT', 'SIGTERM'] as const)(
  '%s to the whole process group ends every subtree within 2 s, with no false success',
  async (signal) => {
    await start();
    const runs = [await startTree(service, user), await startTree(service, user + 1)];
    const before = parts();
    signalGroup(signal);
    await Promise.all(runs.map((run) => treeGone(run.user, 2_000)));
    for (const run of runs) expect(await run.answer).toMatchObject({ status: 502, body: { error: 'uncertain' } });
    expect(await service.exited).toEqual({ code: 0, signal: null });
    await partsGone(before);
  },
);

test('SIGTERM to init alone does the same', async () => {
  await start();
  const run = await startTree(service, user);
  const before = parts();
  process.kill(service.part('init').pid, 'SIGTERM');
  await treeGone(user, 2_000);
  expect(await run.answer).toMatchObject({ status: 502, body: { error: 'uncertain' } });
  expect(await service.exited).toEqual({ code: 0, signal: null });
  await partsGone(before);
});

test('SIGKILL to the whole process group leaves nothing either', async () => {
  await start();
  await startTree(service, user);
  const before = parts();
  signalGroup('SIGKILL');
  await treeGone(user, 2_000);
  await eventually('every part is gone', () =>
    allProcesses().every(({ pid, state }) => !before.includes(pid) || state === 'Z'),
  );
});

test('a run that ends while the service drains is answered as what it was', async () => {
  await start();
  const held = await holdRun(service, user);
  signalGroup('SIGTERM');
  await eventually('the gateway drains', async () => {
    const answer = await service.client.get('/healthz').catch(() => undefined);
    return answer === undefined || answer.status === 503;
  });
  held.release();
  expect(await held.answer).toMatchObject({ status: 200, body: { exitCode: 0 } });
  expect(await service.exited).toEqual({ code: 0, signal: null });
});

test('hang-up, quit and other signals of a terminal do not stop it', async () => {
  await start();
  const held = await holdRun(service, user);
  const before = parts();
  for (const signal of ['SIGHUP', 'SIGPIPE', 'SIGWINCH'] as const) signalGroup(signal);
  held.release();
  expect(await held.answer).toMatchObject({ status: 200 });
  expect((await service.client.get('/healthz')).status).toBe(204);
  const now = parts();
  for (const part of ['worker', 'gateway', 'spawner', 'init'] as const) expect(now).toContain(service.part(part).pid);
  expect(before).toEqual(expect.arrayContaining([service.part('worker').pid, service.part('gateway').pid]));
});

test('the audit’s reader goes away: the service stops, and nothing of a user goes on unaudited', async () => {
  await start();
  await startTree(service, user);
  const before = parts();
  service.process.stdout?.destroy();
  // The next line finds nobody.
  await service.exec(user + 1, 'id').catch(() => undefined);
  await eventually(
    'the worker that could not write is gone',
    () => !allProcesses().some(({ pid }) => pid === before[1]),
    8_000,
  );
  await treeGone(user, 3_000);
});

test('a taken port stops the whole start with one sentence', async () => {
  await start();
  const second = await Service.launch({ settings: { RUNNER_ADDR: `127.0.0.1:${service.port}` } });
  try {
    expect((await second.exited).code).toBe(78);
    const sentences = second.log.filter((line) => !line.startsWith('{'));
    expect(sentences.join('\n')).toContain('RUNNER_ADDR');
    expect(sentences).toHaveLength(1);
    expect((await service.client.get('/healthz')).status, 'the first one is not disturbed').toBe(204);
  } finally {
    second.destroy();
  }
});

test('a second service on the same folders is refused and disturbs nothing', async () => {
  await start();
  const held = await holdRun(service, user);
  const second = await Service.launch({ folder: service.folder });
  try {
    expect((await second.exited).code).toBe(78);
    expect(second.log.filter((line) => !line.startsWith('{')).join('\n')).toContain('RUNNER_SOCKET');
  } finally {
    second.client.close();
  }
  held.release();
  expect(await held.answer).toMatchObject({ status: 200, body: { exitCode: 0 } });
});

test('a half-open connection does not hold the stop up', async () => {
  await start();
  const socket = connect(service.port, '127.0.0.1');
  await new Promise((resolve) => socket.once('connect', resolve));
  socket.write('POST /v1/exec HTTP/1.1\r\nHost: x\r\n');
  const began = performance.now();
  process.kill(service.part('init').pid, 'SIGTERM');
  expect(await service.exited).toEqual({ code: 0, signal: null });
  expect(performance.now() - began).toBeLessThan(8_000);
  socket.destroy();
});
