import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { encodeFrame } from '../../../protocol/frame.ts';
import { mintOperationId } from '../../../protocol/operation-id.ts';
import { FalseGateway } from '../../support/false-gateway.ts';
import { MiB, memoryOf } from '../../support/memory.ts';
import { processesOf } from '../../support/processes.ts';
import { systemTools, uidOf } from '../../support/user.ts';
import { eventually } from '../../support/wait.ts';
import { Worker } from '../../support/worker.ts';

const user = 120_200;
let worker: Worker;

beforeAll(async () => {
  worker = await Worker.start({ ...systemTools('true', 'sleep', 'head'), RUNNER_MAX_RUNS: '8' });
});
afterEach(() => FalseGateway.leaveAll());
afterAll(() => worker.stop());

const stillServes = async (): Promise<void> => {
  const gateway = await FalseGateway.linked(worker.socket);
  const reply = await gateway.exec(1, { user, tool: 'true' }).reply(1, 15_000);
  expect(reply.outcome).toMatchObject({ ok: true });
  await gateway.leave();
};

const request = (id: number, params: object): Buffer =>
  encodeFrame({ kind: 'request', id, operation: 'exec', operationId: mintOperationId(), params });

test('20,000 requests at once: each is answered or the link ends; the worker’s memory is bounded and the next is served', async () => {
  await stillServes();
  const before = memoryOf(worker.pid);
  const gateway = await FalseGateway.linked(worker.socket);
  for (let id = 1; id <= 20_000; id += 1)
    gateway.bytes(request(id, { user: user + 1 + (id % 50), tool: 'sleep', args: ['60'] }));
  await eventually('all are answered or cut off', () => gateway.closed || gateway.heard.length > 19_900, 120_000);
  expect(memoryOf(worker.pid) - before).toBeLessThan(96 * MiB);
  if (!gateway.closed) await gateway.leave();
  await eventually(
    'all runs are ended',
    () => worker.tree.every(({ command }) => !command.includes('sleep 60')),
    15_000,
  );
  await stillServes();
});

/** Says the same over and over, as long as it is taken in, and never reads what comes back. */
const sayWithoutReading = async (bytesOf: (round: number) => Buffer): Promise<void> => {
  const before = memoryOf(worker.pid);
  const gateway = await FalseGateway.linked(worker.socket);
  gateway.stopReading();
  const { socket } = gateway;
  let highest = 0;
  for (let round = 0; round < 1_500 && !gateway.closed; round += 1) {
    const bytes = bytesOf(round);
    // When the worker takes no more in, this side's buffer stays full.
    if (socket.write(bytes) === false) {
      const taken = new Promise<boolean>((resolve) => socket.once('drain', () => resolve(true)));
      const patience = new Promise<boolean>((resolve) => setTimeout(() => resolve(false), 3_000));
      if (!(await Promise.race([taken, patience]))) break;
    }
    if (round % 50 === 0) highest = Math.max(highest, memoryOf(worker.pid));
  }
  highest = Math.max(highest, memoryOf(worker.pid));
  expect(highest - before).toBeLessThan(64 * MiB);
  await gateway.leave();
  await stillServes();
};

test('a gateway that asks and asks and never reads the answers does not fill the worker’s memory', async () => {
  let id = 0;
  await sayWithoutReading(() => {
    const requests = Array.from({ length: 200 }, () => {
      id += 1;
      return request(id, { user, tool: 'unknown' });
    });
    return Buffer.concat(requests);
  });
});

test('nor does one that pings and never reads', async () => {
  const pings = Buffer.concat(Array.from({ length: 4_000 }, () => encodeFrame({ kind: 'ping' })));
  await sayWithoutReading(() => pings);
});

test('a gateway that never grants credit gets no more output than the first credit, and harms nobody', async () => {
  const before = memoryOf(worker.pid);
  const gateway = await FalseGateway.linked(worker.socket);
  for (let id = 1; id <= 8; id += 1)
    gateway.exec(id, { user: user + 100 + id, tool: 'head', args: ['-c', '10000000', '/dev/zero'] });
  const outputBytes = () =>
    gateway.heard.reduce((sum, message) => sum + (message.kind === 'event' ? message.data.length : 0), 0);
  // Each of eight may send 256 KiB ahead of any credit, and keeps 256 KiB of output at most.
  await eventually('all are answered', () => gateway.heard.filter(({ kind }) => kind === 'reply').length === 8, 60_000);
  expect(outputBytes()).toBe(8 * 262_144);
  expect(memoryOf(worker.pid) - before).toBeLessThan(48 * MiB);
  await gateway.leave();
  await stillServes();
});

test('a gateway that offers next to no credit is not sent more than that', async () => {
  const gateway = await FalseGateway.greeted(worker.socket);
  const limits = { requestsInFlight: 512, eventCredit: 10 };
  gateway.say({ kind: 'hello', version: 1, instance: '00000000-0000-4000-8000-000000000000', limits });
  gateway.exec(1, { user, tool: 'head', args: ['-c', '1000', '/dev/zero'] });
  await eventually('an event', () => gateway.heard.some(({ kind }) => kind === 'event'));
  const sizes = () => gateway.heard.flatMap((message) => (message.kind === 'event' ? [message.data.length] : []));
  expect(sizes()).toEqual([10]);
  gateway.say({ kind: 'credit', id: 1, bytes: 5 });
  await eventually('as much again', () => sizes().length === 2);
  expect(sizes()).toEqual([10, 5]);
  await gateway.leave();
  await eventually('its run is ended', () => processesOf(uidOf(user)).length === 0);
  await stillServes();
});

test('a run that its gateway cancels is ended, and answered', async () => {
  // A user who has never run anything: the space of one who has is counted now and then, by a process of that user's.
  const one = user + 70;
  const gateway = await FalseGateway.linked(worker.socket);
  gateway.exec(1, { user: one, tool: 'sleep', args: ['100'] });
  await eventually('it runs', () => processesOf(uidOf(one)).some(({ command }) => /sleep 100$/.test(command)));
  gateway.say({ kind: 'cancel', id: 1 });
  expect((await gateway.reply(1)).outcome).toMatchObject({ ok: false, error: 'uncertain' });
  expect(processesOf(uidOf(one))).toEqual([]);
  const line = await worker.audited((found) => found['reason'] === 'cancelled');
  expect(line).toMatchObject({ action: 'exec', user: one, status: 'error' });
  await gateway.leave();
});

test('a gateway that is gone takes its runs with it, however many', async () => {
  const gateway = await FalseGateway.linked(worker.socket);
  for (let id = 1; id <= 8; id += 1) gateway.exec(id, { user: user + id, tool: 'sleep', args: ['100'] });
  const sleeping = () => worker.tree.filter(({ command }) => /sleep 100$/.test(command)).length;
  await eventually('all run', () => sleeping() === 8);
  await gateway.leave();
  await eventually('none runs', () => sleeping() === 0);
  const ended = () => worker.audit.filter((line) => line['reason'] === 'link_lost' && Number(line['user']) > user);
  await worker.audited(() => new Set(ended().map((line) => line['user'])).size >= 8);
  await stillServes();
});
