import { type ChildProcess, spawn } from 'node:child_process';
import { afterEach, expect, test } from 'vitest';
import { holdRun } from '../../support/held-run.ts';
import { processesOf } from '../../support/processes.ts';
import { Service } from '../../support/service.ts';
import { systemTools } from '../../support/user.ts';
import { eventually } from '../../support/wait.ts';

const uid = 320_300;
const services: Service[] = [];
const others: ChildProcess[] = [];

afterEach(() => {
  for (const service of services.splice(0)) service.destroy();
  for (const child of others.splice(0)) child.kill('SIGKILL');
});

const start = async () => {
  const service = await Service.start({ settings: systemTools('sh', 'id') });
  services.push(service);
  return service;
};

/** A process of a user that nobody looks after, as a crash of a whole earlier life would leave it. */
const plantLeftOver = async (count: number) => {
  const script = `for i in $(seq ${count}); do setsid sleep 1100 & done; wait`;
  const args = ['--reuid', String(uid), '--regid', String(uid), '--clear-groups', 'sh', '-c', script];
  others.push(spawn('setpriv', args, { stdio: 'ignore', detached: true }));
  await eventually('the left-overs run', () => processesOf(uid).length >= count + 1);
};

test('users’ processes of an earlier life are ended before anything is served', async () => {
  await plantLeftOver(20);
  await start();
  expect(processesOf(uid).filter(({ state }) => state !== 'Z')).toEqual([]);
});

test('the start of another service leaves the runs of a living one alone', async () => {
  const first = await start();
  const held = await holdRun(first, 300_301);
  await plantLeftOver(3);
  await start();
  expect(
    processesOf(uid).filter(({ state }) => state !== 'Z'),
    'left-overs are ended',
  ).toEqual([]);
  held.release();
  expect(await held.answer).toMatchObject({ status: 200, body: { exitCode: 0 } });
});
