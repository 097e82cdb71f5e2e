import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { mintOperationId } from '../../../protocol/operation-id.ts';
import { FalseGateway, goodHello } from '../../support/false-gateway.ts';
import { processesOf } from '../../support/processes.ts';
import { systemTools, uidOf } from '../../support/user.ts';
import { eventually } from '../../support/wait.ts';
import { Worker } from '../../support/worker.ts';

const user = 120_100;
let victim = 120_110;
let worker: Worker;

beforeAll(async () => {
  worker = await Worker.start(systemTools('true', 'sleep'));
});
afterEach(async () => {
  await FalseGateway.leaveAll();
  const next = await FalseGateway.linked(worker.socket);
  expect((await next.exec(1, good).reply(1)).outcome).toMatchObject({ ok: true });
  await next.leave();
});
afterAll(() => worker.stop());

const good = { user, tool: 'true' };
const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};
/** A frame around bytes that may be no message. */
const frame = (...bytes: readonly number[]): Buffer => Buffer.concat([u32(bytes.length), Buffer.from(bytes)]);

type Attack = (gateway: FalseGateway) => unknown;

/**
 * With a run under way, says something that a gateway never says. The link must end, be audited, and the run be
 * ended; that the next gateway is served shows itself in the next attack, and after the last one.
 */
const endsTheLink = async (what: string, attack: Attack, reason = 'protocol'): Promise<void> => {
  const gateway = await FalseGateway.linked(worker.socket);
  // Another person each time: the one before may still be locked for a moment.
  victim += 1;
  gateway.exec(1, { user: victim, tool: 'sleep', args: ['100'] });
  await eventually('a run is under way', () =>
    processesOf(uidOf(victim)).some(({ command }) => /sleep 100$/.test(command)),
  );
  const before = worker.lost(reason);
  attack(gateway);
  await eventually(`the link ends: ${what}`, () => gateway.closed);
  await eventually(`it is audited: ${what}`, () => worker.lost(reason) === before + 1);
  await eventually(`its run is ended: ${what}`, () => processesOf(uidOf(victim)).length === 0);
};

test('frames that are none', async () => {
  // One that is a good message but for its encoding: a lenient decoder takes it.
  const kindPing = Buffer.from('\xa4kind\xa4ping', 'latin1');
  const attacks: Record<string, Buffer> = {
    'a ping with a doubled key': frame(0x82, ...kindPing, ...kindPing),
    'length 0': u32(0),
    'a length over the limit': u32(4 * 1024 * 1024 + 1),
    'the largest length': u32(0xffff_ffff),
    'no msgpack': frame(0xc1),
    'a cut value': frame(0x82, 0xa4),
    'two values': frame(0xc0, 0xc0),
    'an extension': frame(0xd4, 0x00, 0x00),
    'a timestamp': frame(0xd6, 0xff, 0, 0, 0, 0),
    'integer keys': frame(0x81, 0x01, 0x01),
    'a doubled key': frame(0x82, 0xa1, 0x61, 0x01, 0xa1, 0x61, 0x01),
    'invalid UTF-8': frame(0x81, 0xa1, 0xff, 0x01),
    'depth without end': Buffer.concat([u32(1_000), Buffer.alloc(1_000, 0x91)]),
    HTTP: Buffer.from('POST /v1/exec HTTP/1.1\r\n\r\n'),
  };
  for (const [what, bytes] of Object.entries(attacks)) await endsTheLink(what, (gateway) => gateway.bytes(bytes));
});

test('messages that are none, or not a gateway’s to say, or not now', async () => {
  const attacks: Record<string, object> = {
    'no kind': {},
    'an unknown kind': { kind: 'root' },
    'an unknown field': { kind: 'ping', more: 1 },
    'a second hello': goodHello(),
    'a reply': { kind: 'reply', id: 1, outcome: { ok: true, result: {}, streams: {} } },
    'an event': { kind: 'event', id: 1, stream: 'stdout', data: Buffer.from('x') },
    'a list': [1, 2, 3],
    'a cancel of the future': { kind: 'cancel', id: 77 },
    'credit for the future': { kind: 'credit', id: 77, bytes: 1 },
    'credit that was not used': { kind: 'credit', id: 1, bytes: 1 },
    'no credit': { kind: 'credit', id: 1, bytes: 0 },
    'more credit than there is': { kind: 'credit', id: 1, bytes: 2 ** 40 },
  };
  for (const [what, message] of Object.entries(attacks)) await endsTheLink(what, (gateway) => gateway.say(message));
});

test('requests with ids that a gateway never gives', async () => {
  const attacks: Record<string, Attack> = {
    'an id again': (gateway) => gateway.exec(1, good),
    'an id that went by': (gateway) => gateway.exec(5, good).exec(4, good),
    'id 0': (gateway) => gateway.exec(0, good),
    'a negative id': (gateway) => gateway.exec(-1, good),
    'no operation id': (gateway) => gateway.exec(2, good, { operationId: undefined }),
    'an empty operation id': (gateway) => gateway.exec(2, good, { operationId: '' }),
    'an operation id of another kind': (gateway) =>
      gateway.exec(2, good, { operationId: '00000000-0000-4000-8000-000000000000' }),
    'a path as operation id': (gateway) => gateway.exec(2, good, { operationId: '../../etc/passwd' }),
    'an unknown operation': (gateway) => gateway.exec(2, good, { operation: 'shell' }),
    'a name of every object': (gateway) => gateway.exec(2, good, { operation: 'constructor' }),
    'a uid beside the params': (gateway) => gateway.exec(2, good, { uid: 0 }),
  };
  for (const [what, attack] of Object.entries(attacks)) await endsTheLink(what, attack);
});

test('an operation id that is under way already', async () => {
  const operationId = mintOperationId();
  const sleeper = user + 1;
  const slow = { user: sleeper, tool: 'sleep', args: ['100'] };
  await endsTheLink('twice', (gateway) => gateway.exec(2, slow, { operationId }).exec(3, good, { operationId }));
  await eventually('its runs are ended', () => processesOf(uidOf(sleeper)).length === 0);
});

test('params that the gateway’s own check would have refused', async () => {
  const params: Record<string, unknown> = {
    'no params': undefined,
    'a list': [],
    'a uid': { ...good, uid: 0 },
    'a gid': { ...good, gid: 0 },
    'a program': { ...good, program: '/bin/sh' },
    'a space': { ...good, space: '/root' },
    'limits of its own': { ...good, timeLimitMs: 0 },
    'no user': { tool: 'true' },
    'user -20000': { ...good, user: -20_000 },
    'a user beyond the range': { ...good, user: 1_000_001 },
    'half a user': { ...good, user: 0.5 },
    'a user as text': { ...good, user: '7' },
    'an absolute folder': { ...good, dir: '/root' },
    'a folder with ..': { ...good, dir: 'a/../..' },
    'a folder with NUL': { ...good, dir: 'a\0b' },
    'an argument with NUL': { ...good, args: ['a\0b'] },
    'an argument that is none': { ...good, args: [1] },
    'too many arguments': { ...good, args: Array.from({ length: 65_001 }, () => '') },
    'an environment without names': { ...good, env: ['=x'] },
    'an environment with NUL': { ...good, env: ['A=\0'] },
    'too large an environment': { ...good, env: Array.from({ length: 129 }, (_, index) => `A${index}=`) },
    'an agent for another tool': { ...good, agent: 'x' },
    'an agent like an option': { user, tool: 'evo-workflow', agent: '--x' },
  };
  for (const [what, value] of Object.entries(params))
    await endsTheLink(what, (gateway) =>
      gateway.say({ kind: 'request', id: 2, operation: 'exec', operationId: mintOperationId(), params: value }),
    );
  expect(
    worker.audit
      .filter((line) => line.action === 'exec' && line.status === 'ok')
      .every((line) => line['user'] === user),
  ).toBe(true);
});

test('a first message that is no hello, or the hello of another version', async () => {
  // A user who has never run anything: the space of one who has is counted now and then, by a process of that user's.
  const nobody = user + 2;
  for (const first of [
    { kind: 'ping' },
    { kind: 'request', id: 1, operation: 'exec', operationId: mintOperationId(), params: { ...good, user: nobody } },
    { ...goodHello(), version: 2 },
    { ...goodHello(), limits: { requestsInFlight: 0, eventCredit: 1 } },
    { ...goodHello(), instance: 'x' },
  ]) {
    const before = worker.lost('protocol');
    const gateway = await FalseGateway.greeted(worker.socket);
    gateway.say(first);
    await gateway.ended();
    await eventually('it is audited', () => worker.lost('protocol') === before + 1);
  }
  expect(processesOf(uidOf(nobody))).toEqual([]);
});

test('a tool, a shard and limits are the worker’s own to judge: answered, and the link lives', async () => {
  const gateway = await FalseGateway.linked(worker.socket);
  expect((await gateway.exec(1, { ...good, tool: '/bin/sh' }).reply(1)).outcome).toEqual({
    ok: false,
    error: 'tool_not_allowed',
  });
  expect((await gateway.exec(2, { ...good, tool: '__proto__' }).reply(2)).outcome).toEqual({
    ok: false,
    error: 'tool_not_allowed',
  });
  expect((await gateway.exec(3, good).reply(3)).outcome).toMatchObject({ ok: true });
  await gateway.leave();
});
