import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { processEventBytesMax } from '../../../protocol/limits.ts';
import { eventually } from '../../support/wait.ts';
import { bearer, GatewayUnderTest } from './gateway-under-test.ts';

const stallMs = 200;
const processId = `7-${'A'.repeat(22)}`;
let gateway: GatewayUnderTest;
let client: Socket | undefined;
/** What the worker was asked for, in order. */
let asked: unknown[];

beforeEach(async () => {
  gateway = await GatewayUnderTest.start({ stallMs });
  asked = [];
});
afterEach(async () => {
  client?.destroy();
  await gateway.stop();
});

/** The worker has so many bytes more at each turn; after so many turns it has nothing. */
const answerTurns = (bytes: number, turns = Number.POSITIVE_INFINITY): void => {
  gateway.worker.onRequest = (link, { id, params }) => {
    asked.push(params);
    if (asked.length > turns) return;
    const { stdout = 0, stderr = 0 } = params as { readonly stdout?: number; readonly stderr?: number };
    const data = 'x'.repeat(bytes);
    const out = { stream: 'stdout', asked: stdout, from: stdout, next: stdout + bytes, data, encoding: 'utf8' };
    const err = { stream: 'stderr', asked: stderr, from: stderr, next: stderr, data: '', encoding: 'utf8' };
    link.connection.reply(id, { ok: true, result: { pieces: [out, err], termination: null }, streams: {} });
  };
};
const open = (): Socket => {
  client = connect({ host: '127.0.0.1', port: gateway.port });
  client.on('error', () => undefined);
  client.write(
    `GET /v1/process/stream?processId=${processId} HTTP/1.1\r\nHost: x\r\nAuthorization: ${bearer.Authorization}\r\n\r\n`,
  );
  return client;
};

test('each turn goes on where the last one ended, and is asked for when that one is out', async () => {
  answerTurns(5, 3);
  open().resume();
  await eventually('four turns', () => asked.length === 4);
  expect(asked).toMatchObject([
    { processId, waitMs: 0 },
    { stdout: 5, stderr: 0 },
    { stdout: 10, stderr: 0 },
    { stdout: 15, stderr: 0 },
  ]);
  expect(asked[0]).not.toHaveProperty('stdout');
});

test('a client that reads nothing is asked for no more than fits on its way, and is dropped', async () => {
  answerTurns(processEventBytesMax);
  open().pause();
  await eventually('it is connected', async () => (await gateway.connectionCount()) === 1);
  await eventually('it is dropped', async () => (await gateway.connectionCount()) === 0, 10_000);
  // What the kernel takes of it at most: its sending and receiving buffers (tcp(7), tcp_wmem and tcp_rmem).
  expect(asked.length * processEventBytesMax).toBeLessThan(32 * 1024 * 1024);
  const before = asked.length;
  await new Promise((resolve) => setTimeout(resolve, 2 * stallMs));
  expect(asked.length).toBe(before);
});

test('a client that goes away gives its turn up', async () => {
  answerTurns(5, 1);
  const link = await gateway.workerLink();
  const socket = open();
  socket.resume();
  await eventually('it waits for its second turn', () => asked.length === 2);
  socket.destroy();
  await link.cancels.next();
});

test('a stop ends it', async () => {
  answerTurns(5, 1);
  const socket = open();
  socket.resume();
  await eventually('it waits for its second turn', () => asked.length === 2);
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk.toString();
  });
  await gateway.drain(50);
  await eventually('the last chunk', () => text.endsWith('0\r\n\r\n'));
});
