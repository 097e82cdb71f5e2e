import { execFileSync } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { statusOf } from '../../support/keyed.ts';
import { Service } from '../../support/service.ts';
import { homeOf, systemTools } from '../../support/user.ts';
import { eventually } from '../../support/wait.ts';

const user = 430_001;
let service: Service;
let state: string | undefined;

afterEach(async () => {
  service.process.kill('SIGTERM');
  await service.exited;
  if (state !== undefined) execFileSync('umount', [state]);
  service.destroy();
});

const settings = (place: string) => ({ ...systemTools('sh', 'true'), RUNNER_STATE_DIR: place });

/** A service whose ledger lies on a disk of its own of this size. */
const startOn = async (megabytes: number): Promise<string> => {
  const folder = execFileSync('mktemp', ['-d', '/tmp/runner-test-XXXXXXXX'], { encoding: 'utf8' }).trim();
  execFileSync('chmod', ['711', folder]);
  mkdirSync(join(folder, 'run'), { mode: 0o750 });
  const place = join(folder, 'state');
  mkdirSync(place, { mode: 0o700 });
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=0700`, 'tmpfs', place]);
  state = place;
  service = await Service.start({ folder, settings: settings(place) });
  return place;
};

/** Fills the disk to its last block. */
const fill = (place: string): void => {
  const file = openSync(join(place, 'filler'), 'a');
  const block = Buffer.alloc(65_536, 1);
  try {
    for (;;) writeSync(file, block);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  } finally {
    closeSync(file);
  }
  expect(statfsSync(place).bavail).toBe(0);
};

test('a full disk: it goes on with the room that it kept free', async () => {
  const place = await startOn(40);
  const before = await service.exec(user, 'true');
  fill(place);
  const users = Array.from({ length: 8 }, (_, index) => user + index);
  for (let round = 0; round < 40; round += 1) {
    const answers = await Promise.all(users.map((each) => service.exec(each, 'true')));
    expect(answers.map(({ status }) => status)).toEqual(users.map(() => 200));
    const last = answers[0]?.body.operationId ?? '';
    expect((await statusOf(service, { operationId: last })).body).toMatchObject({ state: 'finished', outcome: 'ok' });
  }
  expect((await statusOf(service, { operationId: before.body.operationId ?? '' })).status).toBe(200);
});

test('a full disk: a worker that is killed on it comes back, and so does a service that is stopped there', async () => {
  const place = await startOn(40);
  const before = await service.exec(user, 'true');
  fill(place);
  const known = async () => {
    expect((await statusOf(service, { operationId: before.body.operationId ?? '' })).body.outcome).toBe('ok');
    expect((await service.exec(user, 'true')).status).toBe(200);
  };
  const killed = service.part('worker').pid;
  process.kill(killed, 'SIGKILL');
  await service.replaced('worker', killed);
  await known();
  service.process.kill('SIGTERM');
  expect(await service.exited).toMatchObject({ code: 0 });
  // What the stop has given back, the user takes.
  fill(place);
  service = await Service.start({ folder: service.folder, settings: settings(place) });
  await known();
});

/** Runs until the disk takes nothing more. */
const untilRefused = async (as: number) => {
  // More than fit into what is left.
  for (let runs = 0; runs < 5_000; runs += 1) {
    const answer = await service.exec(as, 'sh', ['-c', 'true']);
    if (answer.status !== 200) return answer;
  }
  throw new Error('the disk took everything');
};

/** An operation that began while there was room and ended, with an answer, when there was none. Returns its id. */
const endedWithoutRoom = async (place: string): Promise<string> => {
  const answer = service.exec(user, 'sh', ['-c', 'touch begun; until [ -e go ]; do sleep 0.05; done']);
  const begun = join(homeOf(service, user), 'begun');
  await eventually('it has begun', () => existsSync(begun));
  fill(place);
  expect(await untilRefused(user + 1)).toMatchObject({ status: 503 });
  closeSync(openSync(join(homeOf(service, user), 'go'), 'w'));
  const { status, body } = await answer;
  expect(status).toBe(200);
  expect((await statusOf(service, { operationId: body.operationId ?? '' })).body.state).toBe('running');
  return body.operationId ?? '';
};
const makeRoom = (place: string) => execFileSync('mount', ['-o', 'remount,size=64m', place]);

test('an outcome that found no room is put down when there is some, also when nothing else is', async () => {
  const place = await startOn(2);
  const operationId = await endedWithoutRoom(place);
  makeRoom(place);
  const found = await statusOf(service, { operationId });
  expect(found.body).toMatchObject({ state: 'finished', outcome: 'ok' });
  expect(service.log.filter((line) => line.includes('the ledger can')).length, 'each change is told once').toBe(1);
});

test('an outcome that found no room is put down at a clean stop', async () => {
  const place = await startOn(2);
  const operationId = await endedWithoutRoom(place);
  makeRoom(place);
  service.process.kill('SIGTERM');
  await service.exited;
  service = await Service.start({ folder: service.folder, settings: settings(place) });
  expect((await statusOf(service, { operationId })).body).toMatchObject({ state: 'finished', outcome: 'ok' });
});

test('a disk that is full at the start: the service comes up by itself when there is room', async () => {
  const place = await startOn(2);
  service.process.kill('SIGTERM');
  await service.exited;
  for (const file of ['ledger.db-wal', 'ledger.db']) rmSync(join(place, file), { force: true });
  fill(place);
  service = await Service.launch({ folder: service.folder, settings: settings(place) });
  await eventually('it says why', () => service.log.some((line) => line.includes('cannot be opened')), 20_000);
  makeRoom(place);
  await service.healthy();
  expect((await service.exec(user, 'true')).status).toBe(200);
});

test('a full disk and no room kept: mutations are refused before any effect, reads go on, and it recovers', async () => {
  const place = await startOn(2);
  expect(service.log.join('\n')).toContain('no room that the ledger could keep free');
  const before = await service.exec(user, 'true');
  expect(before.status, before.text).toBe(200);
  fill(place);
  const canary = join(homeOf(service, user), 'canary');
  const refused = await untilRefused(user);
  expect(refused).toMatchObject({ status: 503, body: { error: 'ledger_unavailable' } });
  expect(await service.exec(user, 'sh', ['-c', 'touch canary'])).toMatchObject({
    status: 503,
    body: { error: 'ledger_unavailable' },
  });
  expect(existsSync(canary)).toBe(false);
  expect((await statusOf(service, { operationId: before.body.operationId ?? '' })).body.state).toBe('finished');
  makeRoom(place);
  const again = await eventually('an answer again', async () => {
    const answer = await service.exec(user, 'sh', ['-c', 'touch canary']);
    return answer.status === 200 && answer;
  });
  expect(again.body.exitCode).toBe(0);
  expect(existsSync(canary)).toBe(true);
});
