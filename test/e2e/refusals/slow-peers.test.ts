import { afterAll, beforeAll, expect, test } from 'vitest';
import { FalseGateway } from '../../support/false-gateway.ts';
import { MiB, memoryOf } from '../../support/memory.ts';
import { RawConnection, rawRequest, statusesIn } from '../../support/raw-http.ts';
import { Service, token } from '../../support/service.ts';
import { systemTools } from '../../support/user.ts';
import { eventually } from '../../support/wait.ts';
import { Worker } from '../../support/worker.ts';

const user = 110_750;
let service: Service;
let worker: Worker;

beforeAll(async () => {
  service = await Service.start({ settings: systemTools('true') });
  worker = await Worker.start(systemTools('true'));
});
afterAll(async () => {
  await worker.stop();
  await service.stop();
});

/** Says one byte now and then until the server has enough; returns all that came, and after how long. */
const drip = async (start: string, limitMs: number): Promise<{ text: string; afterMs: number }> => {
  const started = performance.now();
  const connection = new RawConnection(service.port).say(start);
  const dripping = setInterval(() => connection.say('x'), 500);
  const text = await connection.ended(limitMs).finally(() => clearInterval(dripping));
  return { text, afterMs: performance.now() - started };
};

/** A gateway that says half of the largest frame there can be, and then nothing. */
const fallSilent = async (): Promise<number> => {
  const before = memoryOf(worker.pid);
  const gateway = await FalseGateway.linked(worker.socket);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(4 * MiB);
  const started = performance.now();
  gateway.bytes(length, Buffer.alloc(2 * MiB));
  await eventually('the link ends', () => gateway.closed, 25_000);
  await eventually('it is audited', () => worker.lost('silence') === 1);
  expect(memoryOf(worker.pid) - before).toBeLessThan(32 * MiB);
  const next = await FalseGateway.linked(worker.socket);
  expect((await next.exec(1, { user, tool: 'true' }).reply(1)).outcome).toMatchObject({ ok: true });
  await next.leave();
  return performance.now() - started;
};

// The only slow test: 10 s for a head and for a silent gateway, 30 s for a request, all waited for at the same time.
test('whoever is slow is given up within its limit: heads, bodies, gateways; others are served', {
  timeout: 60_000,
}, async () => {
  const head = ['Host: x', `Authorization: Bearer ${token}`, 'Content-Length: 500'];
  const [slowHead, slowStart, slowBody, silentMs] = await Promise.all([
    drip('POST /v1/exec HTTP/1.1\r\nHost: x\r\nX-Slow: ', 25_000),
    drip('GET /', 25_000),
    drip(rawRequest('POST /v1/exec HTTP/1.1', head), 45_000),
    fallSilent(),
  ]);
  for (const { text, afterMs } of [slowHead, slowStart]) {
    expect(afterMs).toBeGreaterThan(9_000);
    expect(afterMs).toBeLessThan(18_000);
    expect([[], [408]]).toContainEqual(statusesIn(text));
  }
  expect(slowBody.afterMs).toBeGreaterThan(29_000);
  expect(slowBody.afterMs).toBeLessThan(40_000);
  expect([[], [408]]).toContainEqual(statusesIn(slowBody.text));
  expect(silentMs).toBeGreaterThan(9_000);
  expect((await service.exec(user, 'true')).status).toBe(200);
});
