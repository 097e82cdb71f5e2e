import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { processesOf } from '../../support/processes.ts';
import { RawConnection, rawRequest } from '../../support/raw-http.ts';
import { Service, token } from '../../support/service.ts';
import { homeOf, systemTools, uidOf } from '../../support/user.ts';
import { eventually } from '../../support/wait.ts';

const first = 100_350;
const limitMs = 4_000;
let service: Service;

beforeAll(async () => {
  service = await Service.start({
    settings: { ...systemTools('sh', 'sleep'), RUNNER_EXEC_TIMEOUT_SEC: String(limitMs / 1_000) },
  });
});
afterAll(() => service.stop());

const shell = async (script: string, who = first) => {
  const started = performance.now();
  const { status, body } = await service.exec(who, 'sh', ['-c', script]);
  expect(status, JSON.stringify(body)).toBe(200);
  return { ...body, elapsedMs: performance.now() - started };
};

test.concurrent('a tool over the time limit is killed with all it started, and the answer says so', async ({
  expect,
}) => {
  const user = 100_360;
  const up = (name: string) => `: >up-${name}; exec sleep 100`;
  const script = `sh -c '${up('child')}' & setsid sh -c '${up('session')}' & (setsid sh -c '${up('orphan')}' &) ; ${up('leader')}`;
  const body = await shell(`echo before; ${script}`, user);
  for (const name of ['child', 'session', 'orphan', 'leader'])
    expect(existsSync(join(homeOf(service, user), `up-${name}`)), name).toBe(true);
  expect(body).toMatchObject({ exitCode: -1, timedOut: true, stdout: 'before\n', signal: 'SIGKILL' });
  expect(body.durationMs).toBeGreaterThanOrEqual(limitMs);
  expect(body.elapsedMs).toBeLessThan(limitMs + 5_000);
  expect(processesOf(uidOf(user))).toEqual([]);
  const line = await service.audited(({ operationId }) => operationId === body.operationId);
  expect(line).toMatchObject({ action: 'exec', user, tool: 'sh', exit: -1, status: 'timeout' });
});

test.concurrent('a tool that ignores every signal it can is killed as well', async ({ expect }) => {
  const user = 100_361;
  const body = await shell('trap "" HUP INT QUIT TERM USR1 USR2 PIPE; while :; do sleep 0.05; done', user);
  expect(body).toMatchObject({ timedOut: true, exitCode: -1, signal: 'SIGKILL' });
  expect(processesOf(uidOf(user))).toEqual([]);
});

test.concurrent('a tool that stopped itself is killed at the limit', async ({ expect }) => {
  const user = 100_362;
  const body = await shell('kill -STOP $$', user);
  expect(body).toMatchObject({ timedOut: true, exitCode: -1 });
  expect(processesOf(uidOf(user))).toEqual([]);
});

test.concurrent('git gets the time to remove its lock files before it is killed', async ({ expect }) => {
  const user = 100_363;
  const hook = '[ -e .git/index.lock ] && : >held; sleep 100';
  const made = await shell(
    `git init -q r && printf '#!/bin/sh\n${hook}\n' >r/.git/hooks/pre-commit && chmod +x r/.git/hooks/pre-commit`,
    user,
  );
  expect(made).toMatchObject({ exitCode: 0, stderr: '' });
  const args = ['-C', 'r', '-c', 'user.name=n', '-c', 'user.email=e', 'commit', '-a', '--allow-empty', '-m', 'm'];
  const { body } = await service.exec(user, 'git', args);
  expect(body).toMatchObject({ timedOut: true });
  const repository = join(homeOf(service, user), 'r');
  expect(existsSync(join(repository, 'held')), 'git held its lock').toBe(true);
  expect(existsSync(join(repository, '.git', 'index.lock'))).toBe(false);
});

test('the answer comes when the tool exits, though a process it left holds the pipes; that process is dead then', async () => {
  const pidFile = join(homeOf(service, first), 'left');
  const body = await shell('(setsid sleep 200 & echo $! >left); echo done');
  expect(body).toMatchObject({ exitCode: 0, stdout: 'done\n', timedOut: false });
  expect(existsSync(pidFile)).toBe(true);
  expect(body.elapsedMs).toBeLessThan(limitMs);
  expect(processesOf(uidOf(first))).toEqual([]);
});

test('what a left process wrote before the tool’s exit is in the answer', async () => {
  const body = await shell(
    'sh -c "echo from child; echo ready >flag; sleep 200" & while ! [ -s flag ]; do sleep 0.01; done',
  );
  expect(body).toMatchObject({ exitCode: 0, stdout: 'from child\n' });
});

test('double forks, new sessions and ignored hang-ups do not outlive the tool', async () => {
  const one = (name: string) =>
    `(nohup setsid sh -c 'setsid sh -c ": >new-${name}; exec sleep 200" & wait' >/dev/null 2>&1 &)`;
  const names = ['a', 'b', 'c'];
  const body = await shell(
    `${names.map(one).join('; ')}; until [ -e new-a ] && [ -e new-b ] && [ -e new-c ]; do sleep 0.01; done`,
    // Who has run nothing yet: a space is counted some time after a run, by a process of its user's.
    first + 1,
  );
  expect(body).toMatchObject({ exitCode: 0, timedOut: false });
  expect(processesOf(uidOf(first + 1))).toEqual([]);
});

test('a client that hangs up does not stop the run', async () => {
  const patient = first + 2;
  const script = 'touch started; until [ -e go ]; do sleep 0.02; done; touch finished';
  const body = JSON.stringify({ user: patient, tool: 'sh', args: ['-c', script] });
  const headers = ['Host: x', `Authorization: Bearer ${token}`, `Content-Length: ${body.length}`];
  const connection = new RawConnection(service.port).say(rawRequest('POST /v1/exec HTTP/1.1', headers, body));
  const home = homeOf(service, patient);
  await eventually('the run began', () => existsSync(join(home, 'started')));
  connection.destroy();
  await delay(300); // for the gateway to notice; nothing fails if that takes longer
  writeFileSync(join(home, 'go'), '');
  const line = await service.audited((found) => found['user'] === patient);
  expect(line).toMatchObject({ action: 'exec', status: 'ok', exit: 0 });
  expect(existsSync(join(home, 'finished'))).toBe(true);
});

test.concurrent('runs of different people end independently', async ({ expect }) => {
  const user = 100_364;
  const [slow, quick] = await Promise.all([shell('sleep 50', user), shell('sleep 0.2; echo quick', user + 1)]);
  expect(slow).toMatchObject({ timedOut: true });
  expect(quick).toMatchObject({ timedOut: false, stdout: 'quick\n' });
});
