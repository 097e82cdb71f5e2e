import { existsSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { FalseGateway, goodHello } from '../../support/false-gateway.ts';
import { systemTools } from '../../support/user.ts';
import { Worker } from '../../support/worker.ts';

const user = 120_000;
let worker: Worker;

beforeAll(async () => {
  worker = await Worker.start(systemTools('true'));
});
afterEach(() => FalseGateway.leaveAll());
afterAll(() => worker.stop());

/** The gateway itself is let in, before and after everybody else. */
const stillServes = async (): Promise<void> => {
  const gateway = await FalseGateway.linked(worker.socket);
  const reply = await gateway.exec(1, { user, tool: 'true' }).reply(1);
  expect(reply.outcome).toMatchObject({ ok: true, result: { exitCode: 0 } });
  await gateway.leave();
};
afterEach(stillServes);

test('the gateway’s uid is let in; so the others’ refusal means something', async () => {
  expect(existsSync(worker.socket)).toBe(true);
  await stillServes();
});

test('others in the gateway’s group are cut off before anything was said to them or read from them', async () => {
  for (const uid of [1, 20_001, 65_534, 20_000 + user, 19_998]) {
    const stranger = new FalseGateway(worker.socket, { uid });
    stranger.say(goodHello()).exec(1, { user, tool: 'true' });
    await stranger.ended();
    expect(stranger.connected, `${uid} got as far as the socket`).toBe(true);
    expect(stranger.bytesHeard, String(uid)).toBe(0);
  }
});

test('root is not the gateway either', async () => {
  const root = new FalseGateway(worker.socket, { uid: 0, gid: 0 });
  root.say(goodHello());
  await root.ended();
  expect(root.connected).toBe(true);
  expect(root.bytesHeard).toBe(0);
});

test('who is neither in the group nor root does not reach the socket', async () => {
  for (const uid of [20_001, 65_534]) {
    const stranger = new FalseGateway(worker.socket, { uid, gid: uid });
    await stranger.ended();
    expect(stranger.connected).toBe(false);
  }
});

test('the gateway’s uid with another group does not pass the folder', async () => {
  const stranger = new FalseGateway(worker.socket, { gid: 65_534 });
  await stranger.ended();
  expect(stranger.connected).toBe(false);
});

test('a second gateway is refused while the first one lives, which goes on', async () => {
  const first = await FalseGateway.linked(worker.socket);
  expect((await first.exec(1, { user, tool: 'true' }).reply(1)).outcome.ok).toBe(true);
  const second = new FalseGateway(worker.socket);
  second.say(goodHello()).exec(1, { user, tool: 'true' });
  await second.ended();
  expect(second.connected).toBe(true);
  expect(second.bytesHeard).toBe(0);
  expect((await first.exec(2, { user, tool: 'true' }).reply(2)).outcome.ok).toBe(true);
  expect(first.closed).toBe(false);
  await first.leave();
});

test('many strangers at once do not keep the gateway out', async () => {
  const strangers = Array.from({ length: 30 }, () => new FalseGateway(worker.socket, { uid: 20_001 }));
  for (const stranger of strangers) await stranger.ended(10_000);
  expect(strangers.every(({ bytesHeard }) => bytesHeard === 0)).toBe(true);
});
