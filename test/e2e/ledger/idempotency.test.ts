import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { execKeyed, statusOf } from '../../support/keyed.ts';
import { Service } from '../../support/service.ts';
import { homeOf, systemTools } from '../../support/user.ts';

const [one, other, racing, quiet] = [410_001, 410_002, 410_003, 410_004] as const;
let service: Service;

beforeAll(async () => {
  service = await Service.start({ settings: systemTools('sh', 'true') });
});
afterAll(() => service.stop());

/** Leaves one line in the home for each time that it really ran. */
const count = 'echo ran >> count; sleep 0.2; wc -l < count';
const effects = (user: number): number => {
  const path = join(homeOf(service, user), 'count');
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').length - 1 : 0;
};

test('fifty callers race with one key: one effect, and each gets its answer or is told that it runs', async () => {
  const ask = () => execKeyed(service, 'race', racing, 'sh', ['-c', count]);
  const answers = await Promise.all(Array.from({ length: 50 }, ask));
  expect(effects(racing)).toBe(1);
  const done = answers.filter(({ status }) => status === 200);
  expect(done.length).toBeGreaterThan(0);
  for (const { body } of done) expect(body.stdout?.trim()).toBe('1');
  for (const { body } of answers.filter(({ status }) => status !== 200))
    expect(body).toMatchObject({ error: 'operation_running', details: { operationId: done[0]?.body.operationId } });
});

test('the same again gets the same answer, marked, with the outputs byte for byte; nothing runs', async () => {
  // Invalid bytes, a cut in the middle of a character, and both streams.
  const script = `${count}; printf 'caf\\303\\251 \\377\\n'; head -c 300000 /dev/zero | tr '\\0' x >&2; exit 3`;
  const ask = () => execKeyed(service, 'again', one, 'sh', ['-c', script]);
  const first = await ask();
  expect(first.status, first.text).toBe(200);
  expect(first.body).toMatchObject({ exitCode: 3, truncated: true });
  expect(first.headers['idempotency-replayed']).toBeUndefined();
  const second = await ask();
  expect(second.headers).toMatchObject({
    'idempotency-replayed': 'true',
    'operation-id': first.body.operationId,
  });
  expect(second.body).toStrictEqual({ ...first.body, replayed: true });
  expect(effects(one)).toBe(1);
});

test('the key of one user is nothing to another', async () => {
  const before = effects(one);
  const answers = await Promise.all(
    [one, other].map((user) => execKeyed(service, 'mine', user, 'sh', ['-c', 'echo ran >> mine; cat mine'])),
  );
  for (const { status, headers, body } of answers) {
    expect(status).toBe(200);
    expect(body.stdout).toBe('ran\n');
    expect(headers['idempotency-replayed']).toBeUndefined();
  }
  expect(effects(one)).toBe(before);
});

test.each([
  ['arguments', 'sh', ['-c', 'echo another >> conflict'], {}],
  ['tool', 'true', ['-c', 'echo ran >> conflict'], {}],
  ['folder', 'sh', ['-c', 'echo ran >> conflict'], { dir: 'work' }],
  ['variables', 'sh', ['-c', 'echo ran >> conflict'], { env: ['OTHER=1'] }],
])('a key with other %s is a conflict, and does nothing', async (what, tool, args, more) => {
  const key = `conflict-${what}`;
  const first = await execKeyed(service, key, quiet, 'sh', ['-c', 'echo ran >> conflict']);
  expect(first.status).toBe(200);
  const lines = readFileSync(join(homeOf(service, quiet), 'conflict'), 'utf8');
  const refused = await execKeyed(service, key, quiet, tool, args, more);
  expect(refused).toMatchObject({
    status: 409,
    body: { error: 'idempotency_conflict', details: { operationId: first.body.operationId } },
  });
  expect(readFileSync(join(homeOf(service, quiet), 'conflict'), 'utf8')).toBe(lines);
});

test('another value of a variable is the same request: tokens change', async () => {
  const ask = (value: string) => execKeyed(service, 'token', quiet, 'sh', ['-c', 'echo $T'], { env: [`T=${value}`] });
  expect((await ask('one')).body.stdout).toBe('one\n');
  expect(await ask('two')).toMatchObject({ status: 200, body: { stdout: 'one\n', replayed: true } });
});

test('what was refused before it began binds nothing', async () => {
  const user = 410_010;
  const refusals: readonly (readonly [number, string, Promise<unknown>])[] = [
    [403, 'tool_not_allowed', execKeyed(service, 'free', user, 'no-such-tool')],
    [400, 'bad_request', execKeyed(service, 'free', user, 'sh', ['a\0b'])],
    [400, 'outside_workspace', execKeyed(service, 'free', user, 'sh', [], { dir: '../..' })],
    [404, 'not_found', execKeyed(service, 'free', user, 'sh', [], { dir: 'nowhere' })],
  ];
  for (const [status, error, answer] of refusals) expect(await answer).toMatchObject({ status, body: { error } });
  const running = service.exec(user, 'sh', ['-c', 'echo go; sleep 0.5']);
  const busy = await execKeyed(service, 'free', user, 'sh', ['-c', 'echo x']).then((answer) =>
    answer.status === 200 ? undefined : answer,
  );
  if (busy !== undefined) expect(busy).toMatchObject({ status: 409, body: { error: 'busy' } });
  await running;
  const free = await execKeyed(service, 'free-2', user, 'sh', ['-c', 'echo done']);
  expect(free).toMatchObject({ status: 200, body: { stdout: 'done\n' } });
});

test.each(['', 'a b', 'ä', 'x'.repeat(129), 'a,b', 'a/b'])('a key %j is refused before anything', async (key) => {
  const answer = await execKeyed(service, Buffer.from(key).toString('latin1'), quiet, 'true');
  expect(answer).toMatchObject({ status: 400, body: { error: 'bad_request' } });
  expect(answer.body.message).toContain('Idempotency-Key');
  if (key !== '') expect(answer.text).not.toContain(key);
});

test('every character of a key counts, up to the longest', async () => {
  const key = `aZ09._:-${'x'.repeat(120)}`;
  const first = await execKeyed(service, key, quiet, 'sh', ['-c', 'echo 1']);
  const second = await execKeyed(service, key, quiet, 'sh', ['-c', 'echo 1']);
  expect([first.body.replayed, second.body.replayed]).toEqual([undefined, true]);
});

test('the audit tells of a replay as one, under the id of the operation that was done', async () => {
  const first = await execKeyed(service, 'audited', quiet, 'true');
  await execKeyed(service, 'audited', quiet, 'true');
  const line = await service.audited(
    ({ operationId, reason }) => operationId === first.body.operationId && reason === 'replayed',
  );
  expect(line).toMatchObject({ action: 'exec', user: quiet, status: 'ok', exit: 0 });
});

test('what became of an operation is told by id and by key', async () => {
  const answer = await execKeyed(service, 'asked', quiet, 'sh', ['-c', 'echo out; echo err >&2; exit 7']);
  const operationId = answer.body.operationId ?? '';
  const byId = await statusOf(service, { operationId });
  expect(byId.status).toBe(200);
  const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  const { operationId: _, ...result } = answer.body;
  expect(byId.body).toStrictEqual({
    operationId,
    kind: 'exec',
    action: 'exec',
    state: 'finished',
    outcome: 'ok',
    httpStatus: 200,
    error: null,
    startedAt: time,
    finishedAt: time,
    result,
    exitCode: 7,
  });
  const byKey = await statusOf(service, { user: quiet, idempotencyKey: 'asked' });
  expect(byKey.body).toStrictEqual(byId.body);
  expect(await statusOf(service, { user: other, idempotencyKey: 'asked' })).toMatchObject({
    status: 404,
    body: { error: 'operation_not_found' },
  });
});

test.each([
  [{}],
  [{ operationId: 'x' }],
  [{ user: 1 }],
  [{ idempotencyKey: 'a' }],
  [{ user: 1, idempotencyKey: 'a b' }],
  [{ operationId: '01a22c7e-0e60-7a3a-ae7a-62f2df8172d0', user: 1, idempotencyKey: 'a' }],
])('a question %j is refused', async (asked) => {
  const answer = await service.client.post('/v1/operation/status', asked);
  expect(answer).toMatchObject({ status: 400, body: { error: 'bad_request' } });
});

test('an operation that never was is not found', async () => {
  const asked = { operationId: '01a22c7e-0e60-7a3a-ae7a-62f2df8172d0' };
  expect(await statusOf(service, asked)).toMatchObject({ status: 404, body: { error: 'operation_not_found' } });
});
