import { describe, expect, it } from 'vitest';
import { Connection } from '../../../protocol/connection.ts';
import { protocolVersion } from '../../../protocol/envelope.ts';
import { encodeFrame } from '../../../protocol/frame.ts';
import {
  eventBytesMax,
  eventCreditBytes,
  heartbeatIntervalMs,
  heartbeatSilenceMs,
  helloTimeoutMs,
  requestsInFlightMax,
} from '../../../protocol/limits.ts';
import { ProtocolViolation } from '../../../protocol/msgpack-check.ts';
import { aRequest, Bench, done, hello, instance, type Role, readyBench } from './support/link.ts';

const roles = ['gateway', 'worker'] as const;

describe('the numbers that the other tests rely on', () => {
  it('are the agreed ones', () => {
    expect(protocolVersion).toBe(1);
    expect(requestsInFlightMax).toBe(512);
    expect(eventBytesMax).toBe(64 * 1024);
    expect(eventCreditBytes).toBe(256 * 1024);
    expect(heartbeatIntervalMs).toBeLessThan(heartbeatSilenceMs);
  });
});

describe.each(roles)('a %s', (role) => {
  it('says hello at once, and is ready when it has heard one', () => {
    const bench = new Bench(role);
    expect(bench.said).toStrictEqual([hello]);
    expect(bench.connection.state).toBe('hello');
    bench.hear(hello);
    expect(bench.connection.state).toBe('ready');
    expect(bench.told).toStrictEqual([['ready']]);
  });

  it('answers a ping with one pong, and a pong with nothing', () => {
    const bench = readyBench(role);
    bench.hear({ kind: 'ping' }, { kind: 'pong' });
    expect(bench.kinds()).toStrictEqual(['hello', 'pong']);
  });

  it('pings after saying nothing for the interval, not before, and again after the next', () => {
    const bench = readyBench(role);
    bench.clock.now += heartbeatIntervalMs - 1;
    bench.connection.tick();
    expect(bench.kinds()).toStrictEqual(['hello']);
    bench.clock.now += 1;
    bench.connection.tick();
    bench.connection.tick();
    expect(bench.kinds()).toStrictEqual(['hello', 'ping']);
    bench.clock.now += heartbeatIntervalMs;
    bench.connection.tick();
    expect(bench.kinds()).toStrictEqual(['hello', 'ping', 'ping']);
  });

  it('takes silence over the limit for a dropped link; what it hears resets the count', () => {
    const bench = readyBench(role);
    bench.clock.now += heartbeatSilenceMs;
    bench.connection.tick();
    bench.hear({ kind: 'pong' });
    bench.clock.now += heartbeatSilenceMs;
    bench.connection.tick();
    bench.clock.now += 1;
    expect(() => bench.connection.tick()).toThrow(ProtocolViolation);
  });

  it('waits for a hello no longer than its own limit', () => {
    const bench = new Bench(role);
    bench.clock.now += helloTimeoutMs;
    bench.connection.tick();
    bench.clock.now += 1;
    expect(() => bench.connection.tick()).toThrow(ProtocolViolation);
  });

  it('is not kept waiting for a hello by one that comes byte by byte', () => {
    const bench = new Bench(role);
    const bytes = encodeFrame(hello);
    bench.connection.receive(bytes.subarray(0, 1));
    bench.clock.now += helloTimeoutMs - 1;
    bench.connection.receive(bytes.subarray(1, 2));
    bench.clock.now += 2;
    expect(() => bench.connection.tick()).toThrow(ProtocolViolation);
  });

  it('draining before the hello is draining after it', () => {
    const bench = new Bench(role);
    bench.connection.drain();
    expect(bench.connection.state).toBe('hello');
    bench.hear(hello);
    expect(bench.connection.state).toBe('draining');
  });

  it('keeps its heartbeat while draining', () => {
    const bench = readyBench(role);
    bench.connection.drain();
    bench.hear({ kind: 'ping' });
    expect(bench.kinds()).toStrictEqual(['hello', 'pong']);
    bench.clock.now += heartbeatSilenceMs + 1;
    expect(() => bench.connection.tick()).toThrow(ProtocolViolation);
  });

  it.each(['hello', 'ready', 'draining'] as const)('says and hears nothing after close() in state %s', (state) => {
    const bench = state === 'hello' ? new Bench(role) : readyBench(role, 2);
    if (state === 'draining') bench.connection.drain();
    const { connection, said, told } = bench;
    const before = [said.length, told.length];
    connection.close();
    expect(connection.state).toBe('closed');
    expect(connection.underWay).toBe(0);
    bench.hear(hello, { kind: 'ping' }, aRequest(3), { kind: 'reply', id: 1, outcome: done });
    connection.receive(Buffer.alloc(100, 0xff));
    bench.clock.now += 1_000_000;
    connection.tick();
    connection.drain();
    connection.cancel(1);
    connection.grant(1, 10);
    expect(() => connection.request('exec', {}, undefined)).toThrow('no request');
    expect(() => connection.event(1, 'stdout', new Uint8Array(1))).toThrow();
    expect(() => connection.reply(1, done)).toThrow();
    expect(connection.state).toBe('closed');
    expect([said.length, told.length]).toStrictEqual(before);
  });

  it.each([
    ['a message', encodeFrame({ kind: 'ping' })],
    ['a forbidden length', Buffer.alloc(4)],
    ['bytes that are no message', Buffer.from([0, 0, 0, 1, 0xc1])],
  ])('hears nothing more of a chunk once it was closed: %s', (_what, more) => {
    const said: Buffer[] = [];
    const connection: Connection = new Connection(role, instance, (bytes) => said.push(bytes), {
      ready: () => connection.close(),
    });
    connection.receive(Buffer.concat([encodeFrame(hello), more]));
    expect(connection.state).toBe('closed');
    expect(said).toHaveLength(1);
  });
});

describe('a gateway', () => {
  it('sends requests with ids from 1 on, and an operation id only if there is one', () => {
    const bench = readyBench('gateway');
    const minted = '01890a5d-ac96-7cc0-8000-000000000000';
    expect(bench.connection.request('exec', { user: 1 }, minted)).toBe(1);
    expect(bench.connection.request('exec', { user: 2 }, undefined)).toBe(2);
    expect(bench.saidOf('request')).toStrictEqual([
      { kind: 'request', id: 1, operation: 'exec', operationId: minted, params: { user: 1 } },
      { kind: 'request', id: 2, operation: 'exec', params: { user: 2 } },
    ]);
  });

  it.each(['hello', 'draining', 'closed'] as const)('sends none in state %s', (state) => {
    const bench = state === 'hello' ? new Bench('gateway') : readyBench('gateway');
    if (state === 'draining') bench.connection.drain();
    if (state === 'closed') bench.connection.close();
    expect(bench.connection.state).toBe(state);
    expect(() => bench.connection.request('exec', {}, undefined)).toThrow('no request');
    expect(bench.saidOf('request')).toStrictEqual([]);
  });

  it('sends no more at once than the worker said it takes', () => {
    const bench = new Bench('gateway');
    bench.hear({ ...hello, limits: { requestsInFlight: 2, eventCredit: 1 } });
    bench.connection.request('exec', {}, undefined);
    expect(bench.connection.full).toBe(false);
    bench.connection.request('exec', {}, undefined);
    expect(bench.connection.full).toBe(true);
    expect(() => bench.connection.request('exec', {}, undefined)).toThrow('no request');
    bench.hear({ kind: 'reply', id: 1, outcome: done });
    expect(bench.connection.full).toBe(false);
    expect(bench.connection.request('exec', {}, undefined)).toBe(3);
  });

  it('spends no id on a request that is larger than a frame', () => {
    const bench = readyBench('gateway');
    expect(() => bench.connection.request('exec', new Uint8Array(5 * 1024 * 1024), undefined)).toThrow(RangeError);
    expect(bench.connection.underWay).toBe(0);
    expect(bench.connection.request('exec', {}, undefined)).toBe(1);
  });

  it('cancels and grants only what is under way', () => {
    const bench = readyBench('gateway', 1);
    bench.connection.cancel(1);
    bench.connection.grant(1, 5);
    bench.connection.cancel(2);
    bench.connection.grant(2, 5);
    bench.hear({ kind: 'reply', id: 1, outcome: done });
    bench.connection.cancel(1);
    bench.connection.grant(1, 5);
    expect(bench.kinds()).toStrictEqual(['hello', 'request', 'cancel', 'credit']);
  });

  it('hears events and the reply of what is under way while draining', () => {
    const bench = readyBench('gateway', 1);
    bench.connection.drain();
    bench.hear({ kind: 'event', id: 1, stream: 'stdout', data: new Uint8Array(1) });
    bench.hear({ kind: 'reply', id: 1, outcome: done });
    expect(bench.told).toStrictEqual([['ready'], ['event', 1], ['reply', 1]]);
    expect(bench.connection.underWay).toBe(0);
  });

  it('can be asked nothing that is the worker’s to say', () => {
    const bench = readyBench('gateway', 1);
    expect(() => bench.connection.event(1, 'stdout', new Uint8Array(1))).toThrow('credit');
    expect(bench.saidOf('event')).toStrictEqual([]);
  });
});

describe('a worker', () => {
  const send = (bench: Bench, bytes: number): void => bench.connection.event(1, 'stdout', new Uint8Array(bytes));

  it('sends events up to the credit and not one byte more', () => {
    const bench = readyBench('worker', 1);
    expect(bench.connection.creditOf(1)).toBe(eventCreditBytes);
    for (let round = 0; round < 4; round += 1) send(bench, eventBytesMax);
    expect(bench.connection.creditOf(1)).toBe(0);
    expect(() => send(bench, 1)).toThrow('credit');
    bench.hear({ kind: 'credit', id: 1, bytes: 10 });
    expect(bench.connection.creditOf(1)).toBe(10);
    expect(() => send(bench, 11)).toThrow('credit');
    send(bench, 10);
    expect(bench.saidOf('event').map(({ data }) => data.length)).toStrictEqual([65536, 65536, 65536, 65536, 10]);
    expect(bench.told.at(-1)).toStrictEqual(['credit', 1]);
  });

  it('starts with the credit that the gateway said, if that is less', () => {
    const bench = new Bench('worker');
    bench.hear({ ...hello, limits: { requestsInFlight: 1, eventCredit: 7 } }, aRequest(1));
    expect(bench.connection.creditOf(1)).toBe(7);
    expect(() => send(bench, 8)).toThrow('credit');
  });

  it.each([0, eventBytesMax + 1])('sends no event of %i bytes, which would end the link', (bytes) => {
    const bench = readyBench('worker', 1);
    expect(() => send(bench, bytes)).toThrow();
    expect(bench.saidOf('event')).toStrictEqual([]);
    expect(bench.connection.creditOf(1)).toBe(eventCreditBytes);
  });

  it('has no credit for what is not under way', () => {
    const bench = readyBench('worker', 1);
    expect(bench.connection.creditOf(2)).toBe(0);
    bench.connection.reply(1, done);
    expect(bench.connection.creditOf(1)).toBe(0);
    expect(() => send(bench, 1)).toThrow('credit');
  });

  it('replies once', () => {
    const bench = readyBench('worker', 1);
    bench.connection.reply(1, done);
    expect(() => bench.connection.reply(1, done)).toThrow('without its request');
    expect(() => bench.connection.reply(2, done)).toThrow('without its request');
    expect(bench.saidOf('reply')).toHaveLength(1);
  });

  it('can still answer after a reply that is larger than a frame', () => {
    const bench = readyBench('worker', 1);
    const result = new Uint8Array(5 * 1024 * 1024);
    expect(() => bench.connection.reply(1, { ok: true, result, streams: {} })).toThrow(RangeError);
    bench.connection.reply(1, { ok: false, error: 'internal' });
    expect(bench.saidOf('reply')).toStrictEqual([{ kind: 'reply', id: 1, outcome: { ok: false, error: 'internal' } }]);
  });

  it('can reply with details that are undefined', () => {
    const [gateway, worker] = [readyBench('gateway', 1), readyBench('worker', 1)];
    worker.connection.reply(1, { ok: false, error: 'not_found', details: undefined });
    gateway.hear(...worker.saidOf('reply'));
    expect(gateway.told.at(-1)).toStrictEqual(['reply', 1]);
  });

  it('still takes requests while draining, to answer that it does', () => {
    const bench = readyBench('worker');
    bench.connection.drain();
    bench.hear(aRequest(1));
    bench.connection.reply(1, { ok: false, error: 'draining' });
    expect(bench.kinds()).toStrictEqual(['hello', 'reply']);
  });

  it('tolerates a credit or a cancel that crosses the reply', () => {
    const bench = readyBench('worker', 1);
    bench.connection.reply(1, done);
    const before = bench.told.length;
    bench.hear({ kind: 'credit', id: 1, bytes: 5 }, { kind: 'cancel', id: 1 });
    expect(bench.told).toHaveLength(before);
    expect(bench.connection.creditOf(1)).toBe(0);
  });

  it('hears of a cancel while the request is under way', () => {
    const bench = readyBench('worker', 1);
    bench.hear({ kind: 'cancel', id: 1 });
    expect(bench.told.at(-1)).toStrictEqual(['cancel', 1]);
    expect(bench.connection.underWay).toBe(1);
  });

  it('can be asked nothing that is the gateway’s to say', () => {
    const bench = readyBench('worker');
    expect(() => bench.connection.request('exec', {}, undefined)).toThrow('no request');
    expect(bench.saidOf('request')).toStrictEqual([]);
  });
});

/** What the other side may not say. Every row starts from a fresh end with two requests under way. */
interface Hostile {
  readonly what: string;
  readonly says: readonly object[];
}
const minted = '01890a5d-ac96-7cc0-8000-000000000000';
const reply = (id: number, outcome: unknown): object => ({ kind: 'reply', id, outcome });
const event = (id: number, data: unknown, stream: unknown = 'stdout'): object => ({ kind: 'event', id, stream, data });
const request = (changes: object): object => ({ ...aRequest(3), ...changes });
const without = (message: object, field: string): object =>
  Object.fromEntries(Object.entries(message).filter(([key]) => key !== field));

const hostileToBoth: readonly Hostile[] = [
  { what: 'a second hello', says: [hello] },
  { what: 'an unknown kind', says: [{ kind: 'shutdown' }] },
  { what: 'no kind', says: [{ id: 1 }] },
  { what: 'a kind that is no string', says: [{ kind: 1 }] },
  { what: 'a kind named as a method of objects', says: [{ kind: 'toString' }] },
  { what: 'an array', says: [['ping']] },
  { what: 'an empty object', says: [{}] },
  { what: 'a ping with more in it', says: [{ kind: 'ping', id: 1 }] },
  { what: 'a pong with more in it', says: [{ kind: 'pong', at: 1 }] },
];

const hostileToWorker: readonly Hostile[] = [
  { what: 'a reply', says: [reply(1, done)] },
  { what: 'an event', says: [event(1, new Uint8Array(1))] },
  { what: 'an id of a request under way', says: [aRequest(2)] },
  { what: 'an id less than the last one', says: [aRequest(9), aRequest(8)] },
  { what: 'the id 0', says: [request({ id: 0 })] },
  { what: 'a negative id', says: [request({ id: -1 })] },
  { what: 'an id that is no whole number', says: [request({ id: 3.5 })] },
  { what: 'an id over 2^32-1', says: [request({ id: 2 ** 32 })] },
  { what: 'an id that is text', says: [request({ id: '3' })] },
  { what: 'no id', says: [without(request({}), 'id')] },
  { what: 'no params', says: [without(request({}), 'params')] },
  { what: 'no operation', says: [without(request({}), 'operation')] },
  { what: 'an unknown operation', says: [request({ operation: 'shell' })] },
  { what: 'an operation named as a method of objects', says: [request({ operation: 'constructor' })] },
  { what: 'an operation id of another version', says: [request({ operationId: minted.replace('-7', '-4') })] },
  { what: 'an operation id in capitals', says: [request({ operationId: minted.toUpperCase() })] },
  { what: 'an operation id that is null', says: [request({ operationId: null })] },
  { what: 'a request with a uid', says: [request({ uid: 0 })] },
  { what: 'a credit for a request to come', says: [{ kind: 'credit', id: 3, bytes: 1 }] },
  { what: 'a credit for id 0', says: [{ kind: 'credit', id: 0, bytes: 1 }] },
  { what: 'more credit than was used', says: [{ kind: 'credit', id: 1, bytes: 1 }] },
  { what: 'a credit of 0', says: [{ kind: 'credit', id: 1, bytes: 0 }] },
  { what: 'a negative credit', says: [{ kind: 'credit', id: 1, bytes: -1 }] },
  { what: 'a credit of half a byte', says: [{ kind: 'credit', id: 1, bytes: 0.5 }] },
  { what: 'a credit over all that there is', says: [{ kind: 'credit', id: 1, bytes: 256 * 1024 + 1 }] },
  { what: 'a credit with more in it', says: [{ kind: 'credit', id: 1, bytes: 1, stream: 'stdout' }] },
  { what: 'a cancel for a request to come', says: [{ kind: 'cancel', id: 3 }] },
  { what: 'a cancel without an id', says: [{ kind: 'cancel' }] },
  { what: 'a cancel with more in it', says: [{ kind: 'cancel', id: 1, signal: 9 }] },
];

const hostileToGateway: readonly Hostile[] = [
  { what: 'a request', says: [aRequest(3)] },
  { what: 'a credit', says: [{ kind: 'credit', id: 1, bytes: 1 }] },
  { what: 'a cancel', says: [{ kind: 'cancel', id: 1 }] },
  { what: 'a reply without its request', says: [reply(3, done)] },
  { what: 'a second reply', says: [reply(1, done), reply(1, done)] },
  { what: 'a reply with id 0', says: [reply(0, done)] },
  { what: 'a reply without an outcome', says: [{ kind: 'reply', id: 1 }] },
  { what: 'a reply without a result', says: [reply(1, without(done, 'result'))] },
  { what: 'a reply without streams', says: [reply(1, without(done, 'streams'))] },
  { what: 'a reply that is both', says: [reply(1, { ...done, error: 'busy' })] },
  { what: 'a reply that is neither', says: [reply(1, { result: null, streams: {} })] },
  { what: 'a reply with an unknown code', says: [reply(1, { ok: false, error: 'nonsense' })] },
  { what: 'a reply with a code named as a method', says: [reply(1, { ok: false, error: 'toString' })] },
  { what: 'a reply with details that are text', says: [reply(1, { ok: false, error: 'busy', details: 'x' })] },
  { what: 'a reply with more in it', says: [{ ...reply(1, done), at: 1 }] },
  { what: 'a stream of negative length', says: [reply(1, { ...done, streams: { out: { bytes: -1, cut: false } } })] },
  { what: 'a stream without its cut', says: [reply(1, { ...done, streams: { out: { bytes: 1 } } })] },
  {
    what: 'a stream of a long name',
    says: [reply(1, { ...done, streams: { ['x'.repeat(33)]: { bytes: 1, cut: true } } })],
  },
  { what: 'an event without its request', says: [event(3, new Uint8Array(1))] },
  { what: 'an event after the reply', says: [reply(1, done), event(1, new Uint8Array(1))] },
  { what: 'an event of no bytes', says: [event(1, new Uint8Array(0))] },
  { what: 'an event over 64 KiB', says: [event(1, new Uint8Array(64 * 1024 + 1))] },
  { what: 'an event of text', says: [event(1, 'text')] },
  { what: 'an event of an array', says: [event(1, [1, 2])] },
  { what: 'an event without a stream', says: [without(event(1, new Uint8Array(1)), 'stream')] },
  { what: 'an event of a nameless stream', says: [event(1, new Uint8Array(1), '')] },
  { what: 'an event of a long-named stream', says: [event(1, new Uint8Array(1), 'x'.repeat(33))] },
  { what: 'an event with more in it', says: [{ ...event(1, new Uint8Array(1)), at: 1 }] },
];

const refuses = (role: Role, draining: boolean, { says }: Hostile): void => {
  const bench = readyBench(role, 2);
  if (draining) bench.connection.drain();
  const last = says.at(-1) ?? {};
  bench.hear(...says.slice(0, -1));
  const before = [bench.said.length, bench.told.length];
  expect(() => bench.hear(last)).toThrow(ProtocolViolation);
  expect([bench.said.length, bench.told.length]).toStrictEqual(before);
};

describe.each([false, true])('from a taken peer (draining: %s)', (draining) => {
  it.each(hostileToBoth)('a worker refuses $what', (row) => refuses('worker', draining, row));
  it.each(hostileToBoth)('a gateway refuses $what', (row) => refuses('gateway', draining, row));
  it.each(hostileToWorker)('a worker refuses $what', (row) => refuses('worker', draining, row));
  it.each(hostileToGateway)('a gateway refuses $what', (row) => refuses('gateway', draining, row));

  it('a worker refuses one request too many', () => {
    const bench = readyBench('worker', 512);
    if (draining) bench.connection.drain();
    expect(bench.connection.full).toBe(true);
    expect(() => bench.hear(aRequest(513))).toThrow(ProtocolViolation);
    expect(bench.connection.underWay).toBe(512);
  });

  it('a worker refuses an id again that was replied to', () => {
    const bench = readyBench('worker', 1);
    if (draining) bench.connection.drain();
    bench.connection.reply(1, done);
    expect(() => bench.hear(aRequest(1))).toThrow(ProtocolViolation);
  });

  it('a worker refuses credits that add up to more than was used', () => {
    const bench = readyBench('worker', 1);
    if (draining) bench.connection.drain();
    bench.connection.event(1, 'stdout', new Uint8Array(10));
    bench.hear({ kind: 'credit', id: 1, bytes: 6 });
    expect(() => bench.hear({ kind: 'credit', id: 1, bytes: 5 })).toThrow(ProtocolViolation);
  });
});

describe.each(roles)('before a hello, a %s refuses', (role) => {
  const greeting = (changes: object): object => ({ ...hello, ...changes });
  it.each([
    ['a ping', { kind: 'ping' }],
    ['a pong', { kind: 'pong' }],
    ['a request', aRequest(1)],
    ['a credit', { kind: 'credit', id: 1, bytes: 1 }],
    ['a cancel', { kind: 'cancel', id: 1 }],
    ['a reply', reply(1, done)],
    ['an event', event(1, new Uint8Array(1))],
    ['an older version', greeting({ version: 0 })],
    ['a newer version', greeting({ version: 2 })],
    ['a version that is text', greeting({ version: '1' })],
    ['no version', without(hello, 'version')],
    ['an instance that is no uuid', greeting({ instance: 'gateway' })],
    ['no limits', without(hello, 'limits')],
    ['a limit of 0 requests', greeting({ limits: { requestsInFlight: 0, eventCredit: 1 } })],
    ['a limit of too many requests', greeting({ limits: { requestsInFlight: 513, eventCredit: 1 } })],
    ['a credit limit of 0', greeting({ limits: { requestsInFlight: 1, eventCredit: 0 } })],
    ['a credit limit over the agreed one', greeting({ limits: { requestsInFlight: 1, eventCredit: 262145 } })],
    ['a limit too many', greeting({ limits: { requestsInFlight: 1, eventCredit: 1, frame: 1 } })],
    ['a hello with more in it', greeting({ uid: 0 })],
  ])('%s', (_what, message) => {
    const bench = new Bench(role);
    expect(() => bench.hear(message)).toThrow(ProtocolViolation);
    expect(bench.connection.state).toBe('hello');
    expect(bench.told).toStrictEqual([]);
    expect(bench.kinds()).toStrictEqual(['hello']);
  });

  it('bytes that are no message', () => {
    const bench = new Bench(role);
    expect(() => bench.connection.receive(Buffer.from('GET / HTTP/1.1\r\n\r\n'))).toThrow(ProtocolViolation);
  });
});
