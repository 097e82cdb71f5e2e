import { type ChildProcess, spawn } from 'node:child_process';
import { afterEach, expect, test } from 'vitest';
import { holdRun } from '../../support/held-run.ts';
import { allProcesses, killAll, processesOf, treeOf } from '../../support/processes.ts';
import { Service } from '../../support/service.ts';
import { systemTools } from '../../support/user.ts';
import { eventually } from '../../support/wait.ts';

const user = 300_300;
const uid = 20_000 + user;
const services: Service[] = [];
const others: ChildProcess[] = [];

afterEach(() => {
  for (const service of services.splice(0)) service.destroy();
  for (const child of others.splice(0)) child.kill('SIGKILL');
  killAll(processesOf(uid).map(({ pid }) => pid));
});

const start = async (folder?: string) => {
  const settings = systemTools('sh', 'id');
  const service = await Service.start(folder === undefined ? { settings } : { settings, folder });
  services.push(service);
  return service;
};

/** The folder of a service that has a space for the user and was killed as a whole. */
const earlierLife = async () => {
  const service = await start();
  expect((await service.exec(user, 'id')).status).toBe(200);
  const parts = treeOf(service.process.pid ?? -1).map(({ pid }) => pid);
  process.kill(-(service.process.pid ?? Number.NaN), 'SIGKILL');
  await eventually('all of it is gone', () =>
    allProcesses().every(({ pid, state }) => !parts.includes(pid) || state === 'Z'),
  );
  return service.folder;
};

/** A process of a user that nobody looks after, as a crash of a whole earlier life would leave it. */
const plantLeftOver = async (count: number) => {
  const script = `for i in $(seq ${count}); do setsid sleep 1100 & done; wait`;
  const args = ['--reuid', String(uid), '--regid', String(uid), '--clear-groups', 'sh', '-c', script];
  others.push(spawn('setpriv', args, { stdio: 'ignore', detached: true }));
  await eventually('the left-overs run', () => processesOf(uid).length >= count + 1);
};

test('users’ processes of an earlier life are ended before anything is served', async () => {
  const folder = await earlierLife();
  await plantLeftOver(20);
  await start(folder);
  expect(processesOf(uid).filter(({ state }) => state !== 'Z')).toEqual([]);
});

test('processes of a uid that has no space here are somebody else’s, and left alone', async () => {
  await plantLeftOver(3);
  await start();
  expect(processesOf(uid).filter(({ state }) => state !== 'Z')).toHaveLength(4);
});

test('the start of another service leaves the runs of a living one alone', async () => {
  const folder = await earlierLife();
  const first = await start();
  const held = await holdRun(first, 300_301);
  await plantLeftOver(3);
  await start(folder);
  expect(
    processesOf(uid).filter(({ state }) => state !== 'Z'),
    'left-overs are ended',
  ).toEqual([]);
  held.release();
  expect(await held.answer).toMatchObject({ status: 200, body: { exitCode: 0 } });
});
