import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClient } from '../../../protocol/client.ts';
import { Service, token } from '../../support/service.ts';
import { treeGone } from '../../support/tree-run.ts';
import { homeOf, systemTools } from '../../support/user.ts';
import { eventually } from '../../support/wait.ts';

const user = 440_001;
let service: Service;
let client: ReturnType<typeof createClient>;

beforeAll(async () => {
  service = await Service.start({ settings: systemTools('sh') });
  client = createClient({
    address: `http://127.0.0.1:${service.port}`,
    token,
    fetch: globalThis.fetch,
    answerMs: 30_000,
  });
});
afterAll(() => service.stop());

const run = (idempotencyKey: string, script: string) =>
  client.call('exec', { user, tool: 'sh', args: ['-c', script] }, { idempotencyKey });

/** Starts what does not end by itself, and waits until it is there. */
const startEndless = async (key: string) => {
  const outcome = run(key, `echo ${key} >> effects; sleep 1000`);
  const path = join(homeOf(service, user), 'effects');
  await eventually('its effect', () => existsSync(path) && readFileSync(path, 'utf8').includes(`${key}\n`));
  return { outcome };
};

test('done, and done again without a second effect', async () => {
  const first = await run('done', 'echo hi; exit 4');
  expect(first).toMatchObject({ kind: 'done', replayed: false, result: { exitCode: 4, stdout: 'hi\n' } });
  expect(await run('done', 'echo hi; exit 4')).toStrictEqual({ ...first, replayed: true });
});

test('failed, with what may be done about it', async () => {
  const outcome = await client.call('exec', { user, tool: 'nothing' }, { idempotencyKey: 'failed' });
  expect(outcome).toMatchObject({ kind: 'failed', code: 'tool_not_allowed', retry: 'change' });
});

test('running, asked by another caller; uncertain when the worker dies; then interrupted', async () => {
  const { outcome } = await startEndless('endless');
  const running = await run('endless', 'echo endless >> effects; sleep 1000');
  expect(running).toMatchObject({ kind: 'running' });
  process.kill(service.part('worker').pid, 'SIGKILL');
  const uncertain = await outcome;
  if (uncertain.kind !== 'uncertain') throw new Error(`it was ${uncertain.kind}`);
  await treeGone(user, 20_000);
  const resolved = await client.resolve(uncertain, { waitMs: 20_000 });
  expect(resolved).toMatchObject({ kind: 'interrupted', operationId: uncertain.operationId });
});

test('uncertain when the gateway dies: resolved by its key alone', async () => {
  const { outcome } = await startEndless('cut');
  process.kill(service.part('gateway').pid, 'SIGKILL');
  const uncertain = await outcome;
  if (uncertain.kind !== 'uncertain') throw new Error(`it was ${uncertain.kind}`);
  expect(uncertain.operationId).toBeUndefined();
  const resolved = await client.resolve(uncertain, { waitMs: 20_000 });
  expect(resolved).toMatchObject({ kind: 'interrupted', outcome: 'killed_link_lost' });
});

test('a read tells what became of one', async () => {
  const done = await run('read', 'echo hi');
  if (done.kind !== 'done') throw new Error('not done');
  const status = await client.call('operation.status', { operationId: done.operationId });
  expect(status).toMatchObject({ kind: 'done', result: { state: 'finished', outcome: 'ok' } });
});
