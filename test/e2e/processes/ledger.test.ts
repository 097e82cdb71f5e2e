import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Answer } from '../../support/http.ts';
import { statusOf } from '../../support/keyed.ts';
import { TestProcess } from '../../support/process-client.ts';
import { processesOf } from '../../support/processes.ts';
import { Service } from '../../support/service.ts';
import { homeOf, systemTools, uidOf } from '../../support/user.ts';
import { eventually } from '../../support/wait.ts';

let service: Service;
beforeAll(async () => {
  service = await Service.start({ settings: systemTools('sh', 'cat') });
});
afterAll(() => service.stop());

let lastUser = 442_000;
const newUser = (): number => lastUser++;
type Fields = Readonly<Record<string, unknown>>;

const keyed = (key: string, verb: string, body: Fields): Promise<Answer> =>
  service.client.post(`/v1/process/${verb}`, body, { 'idempotency-key': key });
/** Leaves one line in the home for each time that it really began. */
const counting = 'echo ran >>count; echo ready; exec sleep 1000';
const startBody = (user: number, more: Fields = {}): Fields => ({
  workspaceId: String(user),
  tool: 'sh',
  args: ['-c', counting],
  ...more,
});
const effects = (user: number): string | undefined => {
  const path = join(homeOf(service, user), 'count');
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
};
const processOf = (answer: Answer): TestProcess =>
  new TestProcess(service.client, (JSON.parse(answer.text) as { processId: string }).processId);
const run = (script: string, user: number, tty = false): Promise<TestProcess> =>
  TestProcess.start(service.client, user, 'sh', ['-c', script], tty);
const isUnbound = async (user: number, key: string): Promise<void> => {
  expect(await statusOf(service, { user, idempotencyKey: key })).toMatchObject({
    status: 404,
    body: { error: 'operation_not_found' },
  });
};
const isReplay = (again: Answer, first: Answer): void => {
  expect(again.status).toBe(first.status);
  expect(again.headers).toMatchObject({
    'idempotency-replayed': 'true',
    'operation-id': first.headers['operation-id'],
  });
};

describe('a start', () => {
  test('under one key is done once, also while it holds its user’s lock; its answer is the same', async () => {
    const user = newUser();
    const first = await keyed('once', 'start', startBody(user));
    expect(first.status, first.text).toBe(200);
    expect(first.headers['idempotency-replayed']).toBeUndefined();
    const process = processOf(first);
    await process.said('ready');
    const sleeps = () => processesOf(uidOf(user)).filter(({ command }) => command === 'sleep 1000').length;
    await eventually('it sleeps', () => sleeps() === 1);
    for (let round = 0; round < 2; round += 1) {
      const again = await keyed('once', 'start', startBody(user));
      isReplay(again, first);
      // Its body is fixed: only the head says that it is told again.
      expect(again.text).toBe(first.text);
    }
    const listed = await service.client.post('/v1/process/list', { workspaceId: String(user) });
    expect(JSON.parse(listed.text)).toMatchObject({ processes: [{ processId: process.processId, state: 'running' }] });
    expect(sleeps()).toBe(1);
    const status = await statusOf(service, { user, idempotencyKey: 'once' });
    expect(status.body).toMatchObject({
      operationId: first.headers['operation-id'],
      kind: 'process',
      action: 'process.start',
      state: 'finished',
      outcome: 'ok',
      httpStatus: 200,
      result: { processId: process.processId, dispatchStatus: 'started' },
    });
    await process.ask('terminate', { signal: 'SIGKILL' });
    isReplay(await keyed('once', 'start', startBody(user)), first);
    expect(effects(user)).toBe('ran\n');
  });

  test('with which twenty callers race begins once', async () => {
    const user = newUser();
    const answers = await Promise.all(Array.from({ length: 20 }, () => keyed('race', 'start', startBody(user))));
    const done = answers.filter(({ status }) => status === 200);
    expect(new Set(done.map(({ text }) => text)).size).toBe(1);
    for (const { status, body } of answers.filter((answer) => !done.includes(answer)))
      expect([status, body.error]).toEqual([409, 'operation_running']);
    const process = processOf(done[0] as Answer);
    await process.said('ready');
    expect(effects(user)).toBe('ran\n');
    await process.ask('terminate', { signal: 'SIGKILL' });
  });

  test.each<[string, Fields]>([
    ['arguments', { args: ['-c', 'echo other >>count'] }],
    ['tool', { tool: 'cat' }],
    ['streams', { tty: true }],
    ['workspace', { workspaceId: '442999:sub' }],
  ])('under the key of one with other %s is a conflict, and starts nothing', async (_what, more) => {
    const user = 442_999;
    const first = await keyed('conflict', 'start', startBody(user));
    expect(first.status, first.text).toBe(200);
    await eventually('its effect', () => effects(user) === 'ran\n');
    expect(await keyed('conflict', 'start', startBody(user, more))).toMatchObject({
      status: 409,
      body: { error: 'idempotency_conflict', details: { operationId: first.headers['operation-id'] } },
    });
    expect(effects(user)).toBe('ran\n');
  });

  test('that is refused as busy, or cannot be executed, binds nothing', async () => {
    const user = newUser();
    const held = await run('sleep 1000', user);
    expect(await keyed('free', 'start', startBody(user))).toMatchObject({ status: 409, body: { error: 'busy' } });
    await isUnbound(user, 'free');
    await held.ask('terminate', { signal: 'SIGKILL' });
    const absent = await keyed('free', 'start', startBody(user, { tool: 'glab' }));
    expect(absent).toMatchObject({ status: 500, body: { error: 'exec_failed' } });
    const done = await keyed('free', 'start', startBody(user));
    expect(done.status, done.text).toBe(200);
    expect(done.headers['idempotency-replayed']).toBeUndefined();
    await processOf(done).said('ready');
    expect(effects(user)).toBe('ran\n');
    await processOf(done).ask('terminate', { signal: 'SIGKILL' });
  });
});

describe('an operation on a process', () => {
  test('a write under one key is written once; another one under it is a conflict', async () => {
    const user = newUser();
    const process = await TestProcess.start(service.client, user, 'cat', []);
    const body = { processId: process.processId, data: 'once\n' };
    const first = await keyed('w', 'write', body);
    expect(first.body).toMatchObject({ written: 5 });
    const again = await keyed('w', 'write', body);
    isReplay(again, first);
    expect(again.body).toStrictEqual({ ...first.body, replayed: true });
    expect(await keyed('w', 'write', { ...body, data: 'other' })).toMatchObject({
      status: 409,
      body: { error: 'idempotency_conflict', details: { operationId: first.headers['operation-id'] } },
    });
    const status = await statusOf(service, { user, idempotencyKey: 'w' });
    expect(status.body).toMatchObject({ action: 'process.write', state: 'finished', result: { written: 5 } });
    expect(status.text).not.toContain('once');
    await process.write('', { eof: true });
    expect(await process.ended()).toMatchObject({ exitCode: 0 });
    expect(process.output).toBe('once\n');
  });

  test('a resize and a terminate are told again as they were', async () => {
    const user = newUser();
    const process = await run('sleep 1000', user, true);
    const { processId } = process;
    const sized = await keyed('size', 'resize', { processId, rows: 5, cols: 6 });
    expect(sized.body).toMatchObject({ resized: true });
    isReplay(await keyed('size', 'resize', { processId, rows: 5, cols: 6 }), sized);
    expect((await keyed('size', 'resize', { processId, rows: 6, cols: 5 })).body.error).toBe('idempotency_conflict');
    const over = await keyed('end', 'terminate', { processId });
    expect(over.body).toMatchObject({ termination: { reason: 'terminated' } });
    const again = await keyed('end', 'terminate', { processId });
    isReplay(again, over);
    expect(again.body).toStrictEqual({ ...over.body, replayed: true });
    expect((await keyed('end', 'terminate', { processId, signal: 'SIGINT' })).body.error).toBe('idempotency_conflict');
    for (const [key, action] of [
      ['size', 'process.resize'],
      ['end', 'process.terminate'],
    ] as const)
      expect((await statusOf(service, { user, idempotencyKey: key })).body).toMatchObject({
        action,
        state: 'finished',
        outcome: 'ok',
      });
  });

  test('what is refused before it has an effect binds nothing', async () => {
    const user = newUser();
    const process = await run('echo ready; until [ -e go ]; do sleep 0.02; done; exec wc -c', user);
    await process.said('ready');
    const { processId } = process;
    const refusal = async (verb: string, body: Fields): Promise<string | undefined> => {
      const { body: told } = await keyed('k', verb, { processId, ...body });
      await isUnbound(user, 'k');
      // It was never on record either.
      const { operationId = '' } = told;
      expect((await statusOf(service, { operationId })).body.error).toBe('operation_not_found');
      return told.error;
    };
    expect(await refusal('write', { processId: `${user}-${'A'.repeat(22)}`, data: 'x' })).toBe('process_not_found');
    expect(await refusal('terminate', { processId: `${user}-${'A'.repeat(22)}` })).toBe('process_not_found');
    expect(await refusal('resize', { rows: 1, cols: 1 })).toBe('process_not_tty');
    const piece = { processId, data: 'x'.repeat(65_536) };
    let written = 0;
    const ask = () => keyed('k', 'write', piece);
    await eventually('it is full', async () => {
      const { status, body } = await process.ask('write', piece);
      if (status === 200) written += 65_536;
      // Before it is really full, what its pipe takes may make room again.
      return body.error === 'process_backpressure' && written >= 3 * 65_536;
    });
    expect(await refusal('write', piece)).toBe('process_backpressure');
    writeFileSync(join(homeOf(service, user), 'go'), '');
    const done = await eventually('there is room', async () => {
      const answer = await ask();
      return answer.status === 200 && answer;
    });
    expect(done.headers['idempotency-replayed']).toBeUndefined();
    isReplay(await ask(), done);
    await process.write('', { eof: true });
    expect(await process.ended()).toMatchObject({ exitCode: 0 });
    expect(process.output).toBe(`ready\n${written + 65_536}\n`);
    for (const [verb, body] of [
      ['write', { data: 'x' }],
      ['resize', { rows: 1, cols: 1 }],
    ] as const) {
      const { body: told } = await keyed('late', verb, { processId, ...body });
      expect(told.error).toBe('process_not_running');
      await isUnbound(user, 'late');
    }
  });
});
