import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Connection } from '../../../protocol/connection.ts';
import type { MessageOf, Outcome } from '../../../protocol/envelope.ts';
import { Refusal } from '../../../protocol/errors.ts';
import { encodeFrame } from '../../../protocol/frame.ts';
import { mintOperationId } from '../../../protocol/operation-id.ts';
import type { Result } from '../../../protocol/operations/index.ts';
import { Dispatch } from '../../../worker/dispatch.ts';
import type { HandlerContext, Handlers } from '../../../worker/handlers.ts';
import { Link } from '../../../worker/link.ts';
import { eventually } from '../../support/wait.ts';
import { collectingAudit, collectingLog } from './support/collect.ts';
import { handlersWith } from './support/handlers.ts';
import { ledgerOfThisFile } from './support/ledger.ts';
import { socketPair } from './support/socket-pair.ts';

const sharedLedger = ledgerOfThisFile();

const result: Result<'exec'> = { exitCode: 0, truncated: false, timedOut: false, durationMs: 1, signal: null };
const params = (user: number) => ({ user, tool: 'git' });

/** The other end, as a gateway would drive it. */
class StandInGateway {
  readonly socket: Socket;
  readonly connection: Connection;
  readonly replies = new Map<number, Outcome>();
  readonly events: MessageOf<'event'>[] = [];
  /** Gives credit back at once for what was taken in. */
  grants = true;
  closed = false;

  constructor(socket: Socket) {
    this.socket = socket;
    this.connection = new Connection('gateway', randomUUID(), (bytes) => void socket.write(bytes), {
      reply: (id, outcome) => void this.replies.set(id, outcome),
      event: (event) => {
        this.events.push(event);
        if (this.grants) this.connection.grant(event.id, event.data.length);
      },
    });
    socket.on('data', (chunk: Buffer) => this.connection.receive(chunk));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.closed = true;
      this.connection.close();
    });
  }

  async ready(): Promise<void> {
    await eventually('the worker’s hello', () => this.connection.state === 'ready');
  }

  exec(user: number, operationId = mintOperationId()): number {
    return this.connection.request('exec', params(user), operationId);
  }

  async reply(id: number): Promise<Outcome> {
    return eventually(`a reply to ${id}`, () => this.replies.get(id));
  }
}

/** One call of the handler, in the hands of the test. */
interface Started {
  readonly user: number;
  readonly context: HandlerContext;
  readonly finish: (given: Result<'exec'>) => void;
  readonly refuse: (error: Error) => void;
}

const opened: Socket[] = [];

const setup = async () => {
  const [near, far] = await socketPair();
  opened.push(near, far);
  const { log, lines: logged } = collectingLog();
  const { audit, lines: audited } = collectingAudit();
  const started: Started[] = [];
  const exec: Handlers['exec'] = async ({ user }, context) => {
    await context.begin();
    const { promise, resolve, reject } = Promise.withResolvers<Result<'exec'>>();
    started.push({ user, context, finish: resolve, refuse: reject });
    return promise;
  };
  const { mutations } = sharedLedger();
  const handlers = handlersWith({ exec });
  const userRange = { first: 0, last: 1_000_000 };
  const dispatch = new Dispatch({ handlers, mutations, audit, log, userRange, overloaded: () => false });
  const link = new Link(far, { instance: randomUUID(), dispatch, audit, log });
  const begun = async (count: number): Promise<readonly Started[]> => {
    await eventually(`${count} handlers`, () => started.length === count);
    return started;
  };
  const losses = () => audited().filter(({ action }) => action === 'link.lost');
  return { near, link, dispatch, started, begun, logged, audited, losses };
};

/** With a gateway that has said hello. */
const linked = async () => {
  const parts = await setup();
  const gateway = new StandInGateway(parts.near);
  await gateway.ready();
  return { ...parts, gateway };
};

const unhandled: unknown[] = [];
const noteUnhandled = (error: unknown): void => void unhandled.push(error);

beforeEach(() => {
  unhandled.length = 0;
  process.on('unhandledRejection', noteUnhandled);
});

afterEach(async () => {
  vi.useRealTimers();
  for (const socket of opened.splice(0)) socket.destroy();
  await new Promise(setImmediate);
  process.off('unhandledRejection', noteUnhandled);
  expect(unhandled).toStrictEqual([]);
});

describe('the link', () => {
  it('carries a request to its handler and the reply back', async () => {
    const { gateway, begun } = await linked();
    const id = gateway.exec(7);
    const [call] = await begun(1);
    expect(call?.user).toBe(7);
    call?.finish(result);
    expect(await gateway.reply(id)).toStrictEqual({
      ok: true,
      result,
      streams: { stdout: { bytes: 0, cut: false }, stderr: { bytes: 0, cut: false } },
    });
  });

  it('answers each request by its own id, in any order', async () => {
    const { gateway, begun } = await linked();
    const ids = [1, 2, 3].map((user) => gateway.exec(user));
    const calls = await begun(3);
    for (const call of calls.toReversed()) call.finish({ ...result, exitCode: call.user });
    const codes = [];
    for (const id of ids) {
      const outcome = await gateway.reply(id);
      codes.push(outcome.ok && (outcome.result as Result<'exec'>).exitCode);
    }
    expect(codes).toStrictEqual([1, 2, 3]);
  });

  it('carries more output than there is credit for, whole and in order, ahead of the reply', async () => {
    const { gateway, begun } = await linked();
    const id = gateway.exec(7);
    const [call] = await begun(1);
    const data = Buffer.alloc(700_000);
    for (let at = 0; at < data.length; at += 1) data[at] = at % 253;
    expect(call?.context.outputs.write('stdout', data, () => undefined)).toBe(false);
    call?.finish(result);
    const outcome = await gateway.reply(id);
    expect(outcome).toMatchObject({ streams: { stdout: { bytes: data.length } } });
    expect(Buffer.concat(gateway.events.map((event) => event.data)).equals(data)).toBe(true);
  });

  it('sends not a byte beyond the credit', async () => {
    const { gateway, begun } = await linked();
    gateway.grants = false;
    gateway.exec(7);
    const other = gateway.exec(8);
    const [call, second] = await begun(2);
    call?.context.outputs.write('stdout', Buffer.alloc(700_000), () => undefined);
    // A reply that was made later has arrived: all that could be sent before it is there.
    second?.finish(result);
    expect((await gateway.reply(other)).ok, 'a stalled output holds up no other reply').toBe(true);
    const sent = gateway.events.reduce((sum, { data }) => sum + data.length, 0);
    expect(sent).toBe(262_144);
  });

  it('answers internal in place of what is larger than a frame can be, and goes on', async () => {
    const { gateway, begun, logged, losses } = await linked();
    const id = gateway.exec(1);
    const [call] = await begun(1);
    call?.refuse(new Refusal('busy', { action: 'exec', operationId: 'x'.repeat(5_000_000) }));
    expect(await gateway.reply(id)).toStrictEqual({ ok: false, error: 'internal' });
    expect(logged.length).toBeGreaterThan(0);
    const next = gateway.exec(2);
    (await begun(2))[1]?.finish(result);
    expect((await gateway.reply(next)).ok).toBe(true);
    expect(losses()).toStrictEqual([]);
  });

  it('passes a cancel to its request alone', async () => {
    const { gateway, begun } = await linked();
    const id = gateway.exec(1);
    gateway.exec(2);
    const [first, second] = await begun(2);
    gateway.connection.cancel(id);
    await eventually('the signal', () => first?.context.signal.aborted);
    expect(first?.context.signal.reason).toBe('cancelled');
    expect(second?.context.signal.aborted).toBe(false);
    first?.refuse(new Refusal('uncertain'));
    expect(await gateway.reply(id)).toStrictEqual({ ok: false, error: 'uncertain' });
  });
});

/** Everything on the link is at its end, and told so. */
const expectEnd = async (
  parts: Awaited<ReturnType<typeof linked>>,
  calls: readonly Started[],
  reason: string,
  [status, stopReason] = ['error', 'link_lost'],
): Promise<void> => {
  await parts.link.closed;
  await eventually('the gateway’s end closed', () => parts.gateway.closed);
  expect(calls.length).toBeGreaterThan(0);
  for (const { context } of calls) {
    expect(context.signal.aborted).toBe(true);
    expect(context.signal.reason).toBe(stopReason);
  }
  expect(parts.losses()).toStrictEqual([
    { time: expect.any(String), action: 'link.lost', ms: expect.any(Number), status, reason },
  ]);
};

describe('a link that is lost', () => {
  const violations: readonly (readonly [string, () => Buffer])[] = [
    ['a frame of length 0', () => Buffer.alloc(4)],
    ['a frame over the limit', () => Buffer.from([0x00, 0x40, 0x00, 0x01])],
    ['bytes that are no message', () => Buffer.from([0, 0, 0, 1, 0xc1])],
    [
      'a message that only the worker may send',
      () => encodeFrame({ kind: 'reply', id: 1, outcome: { ok: false, error: 'internal' } }),
    ],
    [
      'an id that is used again',
      () =>
        encodeFrame({ kind: 'request', id: 1, operation: 'exec', operationId: mintOperationId(), params: params(3) }),
    ],
    ['an unknown operation', () => encodeFrame({ kind: 'request', id: 9, operation: 'root.shell', params: {} })],
    [
      'params that nobody checked',
      () =>
        encodeFrame({
          kind: 'request',
          id: 9,
          operation: 'exec',
          operationId: mintOperationId(),
          params: { user: -1, tool: 'git' },
        }),
    ],
    [
      'a request without an operation id',
      () => encodeFrame({ kind: 'request', id: 9, operation: 'exec', params: params(3) }),
    ],
    ['credit that was not used', () => encodeFrame({ kind: 'credit', id: 1, bytes: 1 })],
  ];
  it.each(violations)('by a violation: %s', async (_name, bytes) => {
    const parts = await linked();
    parts.gateway.exec(1);
    parts.gateway.exec(2);
    const calls = await parts.begun(2);
    parts.near.write(bytes());
    await expectEnd(parts, calls, 'protocol');
    expect(parts.started, 'nothing else was begun').toHaveLength(2);
    expect(parts.logged.some((line) => line.includes('given up'))).toBe(true);
  });

  it('by the gateway’s end', async () => {
    const parts = await linked();
    parts.gateway.exec(1);
    const calls = await parts.begun(1);
    parts.near.destroy();
    await expectEnd(parts, calls, 'closed');
  });

  it('by the gateway’s end of sending alone', async () => {
    const parts = await linked();
    parts.gateway.exec(1);
    const calls = await parts.begun(1);
    parts.near.end();
    await expectEnd(parts, calls, 'closed');
  });

  it('by the worker’s own wish', async () => {
    const parts = await linked();
    parts.gateway.exec(1);
    const calls = await parts.begun(1);
    parts.link.end();
    await expectEnd(parts, calls, 'draining', ['ok', 'draining']);
  });

  it('by the worker’s own wish, though the gateway takes nothing in', async () => {
    const { near, link, begun, gateway } = await linked();
    gateway.exec(1);
    const [call] = await begun(1);
    near.pause();
    call?.context.outputs.write('stdout', Buffer.alloc(262_144), () => undefined);
    link.end();
    await link.closed;
  });

  it('is not read from while the gateway takes no answers in', async () => {
    const { near, gateway } = await linked();
    near.pause();
    const pings = Buffer.concat(Array.from({ length: 4_000 }, () => encodeFrame({ kind: 'ping' })));
    for (let round = 0; round < 20; round += 1) near.write(pings);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(near.writableLength, 'what was not taken in').toBeGreaterThan(100_000);
    near.resume();
    await eventually('it is read again', () => near.writableLength === 0, 30_000);
    expect(gateway.closed).toBe(false);
  });

  it('by the worker’s own wish, after a reply that was given: it still arrives', async () => {
    const { gateway, link, begun } = await linked();
    const id = gateway.exec(1);
    const [call] = await begun(1);
    call?.finish(result);
    await link.idle();
    link.end();
    await link.closed;
    expect((await gateway.reply(id)).ok).toBe(true);
    await eventually('the gateway’s end closed', () => gateway.closed);
  });

  it('lets the output of its runs go nowhere, so that they can end', async () => {
    const parts = await linked();
    parts.gateway.grants = false;
    parts.gateway.exec(1);
    const [call] = await parts.begun(1);
    const resume = vi.fn();
    expect(call?.context.outputs.write('stdout', Buffer.alloc(700_000), resume)).toBe(false);
    parts.near.destroy();
    await parts.link.closed;
    expect(resume).toHaveBeenCalledTimes(1);
    expect(call?.context.outputs.write('stdout', Buffer.alloc(700_000), resume)).toBe(true);
  });

  it('ignores what its requests still answer, and audits how they came out', async () => {
    const { gateway, near, link, begun, audited, logged } = await linked();
    gateway.exec(1);
    gateway.exec(2);
    const [first, second] = await begun(2);
    near.destroy();
    await link.closed;
    first?.finish(result);
    second?.refuse(new Refusal('uncertain'));
    await link.idle();
    const lines = audited().filter(({ action }) => action === 'exec');
    expect(lines).toHaveLength(2);
    expect(lines.find(({ user }) => user === 1)).toMatchObject({ status: 'ok' });
    expect(lines.find(({ user }) => user === 2)).toMatchObject({ status: 'error', reason: 'link_lost' });
    expect(logged).toStrictEqual([]);
  });
});

const fakeClock = (): void => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
};

/** A turn of both event loops: what was written has been read. */
const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
};

describe('silence', () => {
  it('of a gateway that never says hello ends the link', async () => {
    fakeClock();
    const { link, losses, near } = await setup();
    near.resume();
    vi.advanceTimersByTime(4_900);
    await settle();
    expect(losses()).toStrictEqual([]);
    vi.advanceTimersByTime(1_200);
    await link.closed;
    // Counted from the start, so that a hello that trickles in is none: a violation.
    expect(losses()).toMatchObject([{ reason: 'protocol', status: 'error' }]);
  });

  it('of a gateway in the middle of its work ends the link and its runs', async () => {
    fakeClock();
    const parts = await linked();
    parts.gateway.exec(1);
    const calls = await parts.begun(1);
    // It reads, but answers nothing any more.
    parts.near.removeAllListeners('data');
    parts.near.resume();
    vi.advanceTimersByTime(9_900);
    await settle();
    expect(parts.losses()).toStrictEqual([]);
    vi.advanceTimersByTime(1_200);
    await expectEnd(parts, calls, 'silence');
  });

  it('does not set in while both only keep the link alive', async () => {
    fakeClock();
    const { gateway, losses } = await linked();
    for (let second = 0; second < 60; second += 1) {
      vi.advanceTimersByTime(1_000);
      await settle();
    }
    expect(losses()).toStrictEqual([]);
    expect(gateway.closed).toBe(false);
  });

  it('is also a gateway that takes no output for too long', async () => {
    fakeClock();
    const parts = await linked();
    parts.gateway.grants = false;
    parts.gateway.exec(1);
    const calls = await parts.begun(1);
    calls[0]?.context.outputs.write('stdout', Buffer.alloc(700_000), () => undefined);
    for (let second = 0; second < 29; second += 1) {
      vi.advanceTimersByTime(1_000);
      await settle();
    }
    expect(parts.losses()).toStrictEqual([]);
    vi.advanceTimersByTime(2_100);
    await expectEnd(parts, calls, 'silence');
  });
});

describe('a draining link', () => {
  it('lets what is under way go on and refuses the rest', async () => {
    const { gateway, link, dispatch, begun, started } = await linked();
    const first = gateway.exec(1);
    const [call] = await begun(1);
    dispatch.drain();
    link.drain();
    const second = gateway.exec(2);
    expect(await gateway.reply(second)).toStrictEqual({ ok: false, error: 'draining' });
    expect(started).toHaveLength(1);
    call?.finish(result);
    expect((await gateway.reply(first)).ok).toBe(true);
  });

  it('is idle at once when nothing is under way', async () => {
    const { link } = await linked();
    await link.idle();
  });

  it('is idle when the last one under way is answered, and not before', async () => {
    const { gateway, link, begun } = await linked();
    gateway.exec(1);
    const second = gateway.exec(2);
    const [a, b] = await begun(2);
    let idle = false;
    const waiting = link.idle().then(() => {
      idle = true;
    });
    b?.finish(result);
    await gateway.reply(second);
    await settle();
    expect(idle).toBe(false);
    a?.finish(result);
    await waiting;
  });
});
