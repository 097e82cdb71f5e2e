import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ask, contentOf, helpersOf } from '../../support/files.ts';
import { statusOf } from '../../support/keyed.ts';
import { Service } from '../../support/service.ts';
import { homeOf, spaceOf } from '../../support/user.ts';
import { eventually } from '../../support/wait.ts';

let service: Service;
let next = 453_000;

beforeAll(async () => {
  service = await Service.start();
});
afterAll(() => service.stop());

const write = (user: number, path: string, content: string, key?: string) =>
  ask(service, 'files/write', { user, path, content }, key);
const remove = (user: number, path: string, key?: string) => ask(service, 'files/delete', { user, path }, key);

test('the same under its key is told again and not done again: write, delete, reset', async () => {
  const user = next++;
  const changes = {
    write: () => write(user, 'f', 'one', 'key-write'),
    delete: () => remove(user, 'f', 'key-delete'),
    reset: () => ask(service, 'workspace/reset', { user }, 'key-reset'),
  };
  for (const [what, change] of Object.entries(changes)) {
    const first = await change();
    expect([first.status, first.body.replayed], what).toEqual([200, undefined]);
    expect((await write(user, 'f', 'other')).status).toBe(200);
    const again = await change();
    expect(again.headers).toMatchObject({ 'idempotency-replayed': 'true', 'operation-id': first.body.operationId });
    expect(again.body).toEqual({ ...first.body, replayed: true });
    expect(await contentOf(service, user, 'f'), what).toBe('other');
    const { body } = await statusOf(service, { operationId: first.body.operationId ?? '' });
    expect(body).toMatchObject({ state: 'finished', outcome: 'ok' });
  }
  const conflict = await write(user, 'f', 'two', 'key-write');
  expect([conflict.status, conflict.body.error]).toEqual([409, 'idempotency_conflict']);
});

test('what certainly had no effect frees its key; a delete that stopped half-way keeps it', async () => {
  const user = next++;
  expect((await write(user, 'd/f', '1', 'free')).body.error).toBe('not_found');
  expect((await remove(user, 'd', 'free')).body.error).toBe('not_found');
  mkdirSync(join(homeOf(service, user), 'd', 'deep'), { recursive: true });
  for (const folder of ['d', 'd/deep']) chownSync(join(homeOf(service, user), folder), 20_000 + user, 20_000 + user);
  expect((await write(user, 'd/f', '1', 'free')).status).toBe(200);
  // Root's: the user can't empty it.
  mkdirSync(join(homeOf(service, user), 'd', 'deep', 'foreign', 'x'), { recursive: true });
  const half = await remove(user, 'd', 'half');
  expect([half.status, half.body.error]).toEqual([500, 'file_failed']);
  expect(existsSync(join(homeOf(service, user), 'd', 'f'))).toBe(false);
  const again = await remove(user, 'd', 'half');
  expect([again.headers['idempotency-replayed'], again.body.error]).toEqual(['true', 'file_failed']);
  expect(await statusOf(service, { user, idempotencyKey: 'half' })).toMatchObject({
    body: { state: 'finished', outcome: 'file_failed', httpStatus: 500 },
  });
  rmSync(join(spaceOf(service, user), '.trash'), { recursive: true, force: true });
  expect((await remove(user, 'd', 'half-2')).body.error).toBe('not_found');
});

test('the worker is killed in the middle of a write: interrupted on record, the old content, nothing left', async () => {
  const user = next++;
  const old = 'o'.repeat(200_000);
  const first = await write(user, 'f', old, 'known');
  expect(first.status).toBe(200);
  const [helper] = helpersOf(user);
  if (!helper) throw new Error('no helper is kept');
  process.kill(helper.pid, 'SIGSTOP');
  const answer = write(user, 'f', 'n'.repeat(200_000), 'killed');
  const isRunning = async () => {
    const { body } = await statusOf(service, { user, idempotencyKey: 'killed' });
    return body.state === 'running';
  };
  // It is said to run from the moment when it is asked for; the second look waits for the record behind that.
  await eventually('it is on record', async () => (await isRunning()) && (await isRunning()));
  const before = service.part('worker').pid;
  process.kill(before, 'SIGKILL');
  const told = await answer;
  expect([told.status, told.body.error]).toEqual([502, 'uncertain']);
  await service.replaced('worker', before);
  expect(helpersOf(user)).toEqual([]);
  expect(await contentOf(service, user, 'f')).toBe(old);
  expect(await statusOf(service, { operationId: told.body.operationId ?? '' })).toMatchObject({
    body: { state: 'interrupted', outcome: null, error: 'uncertain' },
  });
  const again = await write(user, 'f', 'n'.repeat(200_000), 'killed');
  expect([again.status, again.body.error]).toEqual([409, 'operation_interrupted']);
  // What was done before is told as done, and nothing is made up of an answer that nobody has any more.
  expect(await write(user, 'f', old, 'known')).toMatchObject({
    status: 200,
    headers: { 'idempotency-replayed': 'true' },
  });
  const { body } = await write(user, 'f', old, 'known');
  expect(body).toEqual({ operationId: first.body.operationId, replayed: true, outputExpired: true });
});

test('killed at any moment: old or new, never a half, and no stray after the next change', async () => {
  const user = next++;
  const contents = ['a', 'b'].map((letter) => letter.repeat(250_000));
  await write(user, 'f', contents[0] ?? '');
  const place = join(homeOf(service, user), 'f');
  for (let round = 0; round < 3; round += 1) {
    let going = true;
    const writing = (async () => {
      for (let at = 0; going; at += 1) await write(user, 'f', contents[at % 2] ?? '').catch(() => undefined);
    })();
    await new Promise((resolve) => setTimeout(resolve, 100 + 37 * round));
    const before = service.part('worker').pid;
    process.kill(before, 'SIGKILL');
    going = false;
    await writing;
    expect(contents).toContain(readFileSync(place, 'utf8'));
    await service.replaced('worker', before);
  }
  await eventually('it is served again', async () => (await write(user, 'g', '')).status === 200);
  expect(readdirSync(spaceOf(service, user)).sort()).toEqual(['home', 'tmp']);
});
