import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { execKeyed, statusOf } from '../../support/keyed.ts';
import { Service } from '../../support/service.ts';
import { treeGone } from '../../support/tree-run.ts';
import { homeOf, systemTools } from '../../support/user.ts';
import { eventually } from '../../support/wait.ts';

const user = 420_001;
let service: Service;

beforeEach(async () => {
  service = await Service.start({ settings: systemTools('sh') });
});
afterEach(() => service.destroy());

const slow = 'echo ran >> count; echo begun > begun; sleep 60; echo late >> count';
const effects = (): string => readFileSync(join(homeOf(service, user), 'count'), 'utf8');

/** Starts what takes long under a key, and waits until it has had an effect. */
const startSlow = async (key: string) => {
  const answer = execKeyed(service, key, user, 'sh', ['-c', slow]).catch(() => 'broken' as const);
  await eventually('it has begun', () => existsSync(join(homeOf(service, user), 'begun')));
  return { answer };
};
const again = (key: string) => execKeyed(service, key, user, 'sh', ['-c', slow]);

/** Begins nothing, and yet can be asked for. */
const settledStatus = (key: string) =>
  eventually('a status that is final', async () => {
    const found = await statusOf(service, { user, idempotencyKey: key }).catch(() => undefined);
    return found?.status === 200 && found.body.state !== 'running' && found;
  });

test('the worker is killed: the operation was interrupted, and is never done again under its key', async () => {
  const { answer } = await startSlow('killed');
  expect(await statusOf(service, { user, idempotencyKey: 'killed' })).toMatchObject({
    status: 200,
    body: { state: 'running', outcome: null, httpStatus: null, finishedAt: null },
  });
  process.kill(service.part('worker').pid, 'SIGKILL');
  const told = await answer;
  if (told === 'broken') throw new Error('the gateway is gone too');
  expect(told).toMatchObject({ status: 502, body: { error: 'uncertain' } });
  await treeGone(user, 20_000);
  await service.healthy();
  expect(await statusOf(service, { operationId: told.body.operationId ?? '' })).toMatchObject({
    status: 200,
    body: { state: 'interrupted', outcome: null, httpStatus: 502, error: 'uncertain' },
  });
  expect(await again('killed')).toMatchObject({
    status: 409,
    body: { error: 'operation_interrupted', details: { state: 'interrupted', operationId: told.body.operationId } },
  });
  expect(effects()).toBe('ran\n');
});

test('the gateway is killed: the run was ended since the link was lost, and that is on record', async () => {
  const { answer } = await startSlow('cut');
  process.kill(service.part('gateway').pid, 'SIGKILL');
  expect(await answer).toBe('broken');
  await treeGone(user, 20_000);
  await service.healthy();
  const status = await settledStatus('cut');
  expect(status.body).toMatchObject({ state: 'finished', outcome: 'killed_link_lost', httpStatus: 502 });
  expect(await again('cut')).toMatchObject({
    status: 409,
    body: { error: 'operation_interrupted', details: { state: 'finished', outcome: 'killed_link_lost' } },
  });
  expect(effects()).toBe('ran\n');
});

test('the gateway is killed after the answer was ready: the same answer is there for whoever asks again', async () => {
  const first = await execKeyed(service, 'known', user, 'sh', ['-c', 'echo ran >> count; echo hi']);
  const before = service.part('gateway').pid;
  process.kill(before, 'SIGKILL');
  await service.replaced('gateway', before);
  const second = await execKeyed(service, 'known', user, 'sh', ['-c', 'echo ran >> count; echo hi']);
  expect(second.body).toStrictEqual({ ...first.body, replayed: true });
  expect(effects()).toBe('ran\n');
});

test('after the worker’s restart the outcome is told, without outputs', async () => {
  const ask = () => execKeyed(service, 'old', user, 'sh', ['-c', 'echo ran >> count; exit 9']);
  const first = await ask();
  const before = service.part('worker').pid;
  process.kill(before, 'SIGTERM');
  await service.replaced('worker', before);
  const second = await ask();
  expect(second).toMatchObject({
    status: 200,
    headers: { 'idempotency-replayed': 'true' },
    body: { exitCode: 9, timedOut: false, outputExpired: true, replayed: true, operationId: first.body.operationId },
  });
  expect(second.body).not.toHaveProperty('stdout');
  expect(effects()).toBe('ran\n');
  const status = await statusOf(service, { operationId: first.body.operationId ?? '' });
  expect(status.body).toMatchObject({ state: 'finished', outcome: 'ok', exitCode: 9 });
  expect(status.body).not.toHaveProperty('result');
});

test.each(['worker', 'gateway'] as const)(
  'a %s that is asked to stop gives the answers that it can give first',
  async (part) => {
    const before = service.part(part).pid;
    const answer = execKeyed(service, 'short', user, 'sh', ['-c', 'echo begun > begun; sleep 0.2; echo all']);
    await eventually('it has begun', () => existsSync(join(homeOf(service, user), 'begun')));
    process.kill(before, 'SIGTERM');
    expect(await answer).toMatchObject({ status: 200, body: { exitCode: 0, stdout: 'all\n' } });
    await service.replaced(part, before);
    expect((await statusOf(service, { user, idempotencyKey: 'short' })).body).toMatchObject({
      state: 'finished',
      outcome: 'ok',
    });
  },
);

test('a stop ends what is under way and puts it down; the next start knows all', async () => {
  const done = await execKeyed(service, 'done', user, 'sh', ['-c', 'true']);
  const { answer } = await startSlow('stopped');
  const { folder } = service;
  service.process.kill('SIGTERM');
  const told = await answer;
  expect(told).toMatchObject({ status: 502, body: { error: 'uncertain' } });
  await service.exited;
  service.client.close();
  service = await Service.start({ settings: systemTools('sh'), folder });
  expect((await statusOf(service, { user, idempotencyKey: 'stopped' })).body).toMatchObject({
    state: 'finished',
    outcome: expect.stringMatching(/^killed_(link_lost|draining)$/),
  });
  expect((await statusOf(service, { operationId: done.body.operationId ?? '' })).body).toMatchObject({ outcome: 'ok' });
  expect(await again('stopped')).toMatchObject({ status: 409, body: { error: 'operation_interrupted' } });
  expect(effects()).toBe('ran\n');
});

test('a ledger that was damaged is kept and told of; what may have been on record is not denied', async () => {
  const before = await execKeyed(service, 'k', user, 'sh', ['-c', 'true']);
  const { folder } = service;
  service.process.kill('SIGTERM');
  await service.exited;
  service.client.close();
  const state = join(service.workDir, '.runner');
  writeFileSync(join(state, 'ledger.db'), randomBytes(50_000));
  service = await Service.start({ settings: systemTools('sh'), folder });
  expect(service.log.join('\n')).toContain('ledger.db.damaged-');
  expect(readdirSync(state).some((name) => name.startsWith('ledger.db.damaged-'))).toBe(true);
  expect(await statusOf(service, { operationId: before.body.operationId ?? '' })).toMatchObject({
    status: 503,
    body: { error: 'ledger_unavailable' },
  });
  expect((await execKeyed(service, 'new', user, 'sh', ['-c', 'true'])).status).toBe(200);
});

test('nothing that a caller wrote, and nothing that a tool wrote, is in the ledger’s files', async () => {
  const planted = Array.from({ length: 6 }, () => randomBytes(12).toString('hex'));
  const [argument, value, key, output, folder, name] = planted;
  await service.exec(user, 'sh', ['-c', `mkdir ${folder}`]);
  const answer = await execKeyed(service, key ?? '', user, 'sh', ['-c', `echo ${output}; : ${argument}`], {
    dir: folder,
    env: [`N${name}=${value}`],
  });
  expect(answer.body.stdout).toBe(`${output}\n`);
  const state = join(service.workDir, '.runner');
  const files = readdirSync(state);
  expect(files).toEqual(expect.arrayContaining(['ledger.db', 'ledger.db-wal', 'ledger.key']));
  for (const file of files) {
    const { mode, uid } = statSync(join(state, file));
    expect([mode & 0o077, uid], file).toEqual([0, 0]);
    const bytes = readFileSync(join(state, file));
    for (const secret of planted) expect(bytes.includes(secret), file).toBe(false);
  }
});
