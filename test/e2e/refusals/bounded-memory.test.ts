import { afterAll, beforeAll, expect, test } from 'vitest';
import { MiB, memoryOf } from '../../support/memory.ts';
import { RawConnection, rawRequest, statusesIn } from '../../support/raw-http.ts';
import { Service, token } from '../../support/service.ts';
import { systemTools } from '../../support/user.ts';
import { eventually } from '../../support/wait.ts';

const user = 110_950;
const outputBytes = 262_144;
let service: Service;

beforeAll(async () => {
  service = await Service.start({ settings: systemTools('true', 'head') });
  for (let warm = 0; warm < 20; warm += 1) expect((await service.exec(user, 'true')).status).toBe(200);
});
afterAll(() => service.stop());

const memory = () => [memoryOf(service.part('gateway').pid), memoryOf(service.part('worker').pid)] as const;

/** Opens connections, a few at a time: more than the listener's backlog at once would wait for the kernel's next try. */
const connectMany = async (count: number): Promise<RawConnection[]> => {
  const all: RawConnection[] = [];
  while (all.length < count) {
    const some = Array.from({ length: Math.min(100, count - all.length) }, () => new RawConnection(service.port));
    all.push(...some);
    await eventually('they are connected', () => some.every(({ socket }) => !socket.connecting), 30_000);
  }
  return all;
};

const request = (fields: object): string => {
  const body = JSON.stringify(fields);
  const head = ['Host: x', `Authorization: Bearer ${token}`, `Content-Length: ${body.length}`];
  return rawRequest('POST /v1/exec HTTP/1.1', head, body);
};

test('1,000 idle connections take little memory, and requests are served beside them', async () => {
  const before = memory();
  const idle = await connectMany(1_000);
  expect(idle.filter(({ closed }) => closed).length).toBe(0);
  expect((await service.exec(user, 'true')).status).toBe(200);
  expect((await service.client.get('/healthz')).status).toBe(204);
  for (const [index, after] of memory().entries()) expect(after - (before[index] ?? 0)).toBeLessThan(48 * MiB);
  for (const connection of idle) connection.destroy();
});

test('connections beyond the limit are not served, and those before them are', async () => {
  const many = await connectMany(1_100);
  await eventually('the surplus is cut off', () => many.filter(({ closed }) => closed).length >= 76, 30_000);
  const kept = many.find(({ closed }) => !closed);
  expect(kept?.say(request({ user, tool: 'true' }))).toBeDefined();
  expect(statusesIn((await kept?.heard(/exitCode/)) ?? '')).toEqual([200]);
  for (const connection of many) connection.destroy();
  await eventually(
    'others are served again',
    async () => (await service.client.get('/healthz').catch(() => undefined))?.status === 204,
  );
});

test('many clients that read their large answers a byte at a time, or not at all, hold up nobody', async () => {
  const before = memory();
  const slow = Array.from({ length: 20 }, (_, index) => {
    const connection = new RawConnection(service.port);
    connection.socket.pause();
    connection.say(request({ user: user + 1 + index, tool: 'head', args: ['-c', String(outputBytes), '/dev/zero'] }));
    return connection;
  });
  const done = () => service.audit.filter((line) => line['tool'] === 'head' && line.status === 'ok').length;
  await eventually('all runs are over', () => done() === slow.length, 20_000);
  for (const { socket } of slow) for (let byte = 0; byte < 50; byte += 1) socket.read(1);
  const started = performance.now();
  expect((await service.exec(user, 'true')).status).toBe(200);
  expect((await service.client.get('/healthz')).status).toBe(204);
  expect(performance.now() - started).toBeLessThan(10_000);
  // NUL is six bytes of JSON; each answer is held once.
  const answers = slow.length * outputBytes * 6;
  for (const [index, after] of memory().entries())
    expect(after - (before[index] ?? 0)).toBeLessThan(2 * answers + 32 * MiB);
  for (const connection of slow) connection.destroy();
});

test('a client that asks over and over on one connection and never reads is not served without end', async () => {
  const before = memory();
  const connection = new RawConnection(service.port);
  connection.socket.pause();
  const asked = 4_000;
  for (let index = 0; index < asked; index += 1) connection.say(request({ user: user + 50, tool: 'unknown' }));
  await eventually('some are answered', () => service.audit.some((line) => line['user'] === user + 50), 30_000);
  // What is under way between gateway and worker is bounded; others may be told so for a moment.
  await eventually('others are served', async () => (await service.exec(user, 'true')).status === 200, 30_000);
  for (const [index, after] of memory().entries()) expect(after - (before[index] ?? 0)).toBeLessThan(64 * MiB);
  connection.destroy();
  expect((await service.client.get('/healthz')).status).toBe(204);
});
