import { describe, expect, it, vi } from 'vitest';
import { Connection } from '../../../protocol/connection.ts';
import { eventBytesMax, eventCreditBytes, heartbeatIntervalMs, requestsInFlightMax } from '../../../protocol/limits.ts';
import { Clock, done, instance } from './support/link.ts';
import { Random } from './support/random.ts';

// Many rounds: on a busy machine they take long, and that is no failure.
vi.setConfig({ testTimeout: 120_000 });

/** What is known of one request: the model that both ends are held against. */
interface Known {
  sent: Buffer[];
  received: Buffer[];
  granted: number;
  cancelled: boolean;
  requests: number;
  replies: number;
  answered: boolean;
}

/** Bytes on their way in one direction; they arrive in any pieces. */
class Pipe {
  bytes = Buffer.alloc(0);
  readonly put = (more: Buffer): void => {
    this.bytes = Buffer.concat([this.bytes, more]);
  };
  take(count: number): Buffer {
    const taken = Buffer.from(this.bytes.subarray(0, count));
    this.bytes = this.bytes.subarray(count);
    return taken;
  }
}

interface Weights {
  readonly request: number;
  readonly event: number;
  readonly grant: number;
  readonly cancel: number;
  readonly reply: number;
  readonly deliver: number;
  readonly tick: number;
}

const sum = (parts: readonly Buffer[]): number => parts.reduce((total, part) => total + part.length, 0);

/** Drives two ends at random and checks after every step what must always hold. */
class Walk {
  readonly clock = new Clock();
  readonly known = new Map<number, Known>();
  readonly toWorker = new Pipe();
  readonly toGateway = new Pipe();
  readonly gateway: Connection;
  readonly worker: Connection;
  readonly random: Random;
  atWorker: number[] = [];
  mostUnderWay = 0;
  refusedEvents = 0;
  exhausted = 0;

  constructor(seed: number) {
    this.random = new Random(seed);
    this.gateway = new Connection(
      'gateway',
      instance,
      this.toWorker.put,
      {
        event: ({ id, data }) => this.of(id).received.push(Buffer.from(data)),
        reply: (id) => {
          this.of(id).replies += 1;
        },
      },
      this.clock.read,
    );
    this.worker = new Connection(
      'worker',
      instance,
      this.toGateway.put,
      {
        request: ({ id }) => {
          this.of(id).requests += 1;
          this.atWorker.push(id);
        },
        cancel: (id) => {
          expect(this.of(id)).toMatchObject({ answered: false, requests: 1 });
          this.of(id).cancelled = true;
        },
        credit: (id) => expect(this.worker.creditOf(id)).toBeGreaterThan(0),
      },
      this.clock.read,
    );
  }

  of(id: number): Known {
    const known = this.known.get(id);
    if (!known) throw new Error(`nothing is known of request ${id}`);
    return known;
  }

  step(weights: Weights): void {
    const names = Object.keys(weights) as (keyof Weights)[];
    let left = this.random.below(names.reduce((total, name) => total + weights[name], 0));
    for (const name of names) {
      left -= weights[name];
      if (left < 0) {
        this[name]();
        break;
      }
    }
    this.check();
  }

  request(): void {
    if (this.gateway.state !== 'ready' || this.gateway.full) {
      expect(() => this.gateway.request('exec', {}, undefined)).toThrow('no request');
      return;
    }
    const id = this.gateway.request('exec', { user: this.random.below(9), tool: 'git' }, undefined);
    expect(this.known.has(id)).toBe(false);
    expect(id).toBe(this.known.size + 1);
    this.known.set(id, {
      sent: [],
      received: [],
      granted: 0,
      cancelled: false,
      requests: 0,
      replies: 0,
      answered: false,
    });
  }

  event(): void {
    if (this.atWorker.length === 0) return;
    const id = this.random.pick(this.atWorker);
    const data = Buffer.alloc(1 + this.random.below(eventBytesMax), id & 0xff);
    const before = this.toGateway.bytes.length;
    if (data.length > this.worker.creditOf(id)) {
      this.refusedEvents += 1;
      expect(() => this.worker.event(id, 'stdout', data)).toThrow('credit');
      expect(this.toGateway.bytes.length).toBe(before);
      return;
    }
    this.worker.event(id, 'stdout', data);
    this.of(id).sent.push(data);
    if (this.worker.creditOf(id) === 0) this.exhausted += 1;
  }

  grant(): void {
    if (this.known.size === 0) return;
    const id = 1 + this.random.below(this.known.size);
    const known = this.of(id);
    const owed = sum(known.received) - known.granted;
    if (owed === 0) return;
    const bytes = 1 + this.random.below(owed);
    if (known.replies === 0) known.granted += bytes;
    this.gateway.grant(id, bytes);
  }

  cancel(): void {
    this.gateway.cancel(1 + this.random.below(this.known.size + 2));
  }

  reply(): void {
    if (this.atWorker.length === 0) return;
    const [id] = this.atWorker.splice(this.random.below(this.atWorker.length), 1);
    if (id === undefined) return;
    this.worker.reply(id, this.random.below(2) ? done : { ok: false, error: 'not_found' });
    this.of(id).answered = true;
    expect(() => this.worker.reply(id, done)).toThrow('without its request');
  }

  deliver(): void {
    const size = this.random.pick([1, 3, 40, 5000, 1_000_000]);
    if (this.random.below(2)) this.gateway.receive(this.toGateway.take(1 + this.random.below(size)));
    else this.worker.receive(this.toWorker.take(1 + this.random.below(size)));
  }

  tick(): void {
    this.clock.now += this.random.below(heartbeatIntervalMs / 2);
    this.settle();
    this.gateway.tick();
    this.worker.tick();
  }

  /** Lets everything that is on its way arrive. */
  settle(): void {
    while (this.toGateway.bytes.length + this.toWorker.bytes.length > 0) {
      this.gateway.receive(this.toGateway.take(1_000_000));
      this.worker.receive(this.toWorker.take(1_000_000));
    }
  }

  check(): void {
    const { gateway, worker } = this;
    expect(gateway.underWay).toBeLessThanOrEqual(requestsInFlightMax);
    expect(worker.underWay).toBeLessThanOrEqual(gateway.underWay);
    expect(worker.underWay).toBe(this.atWorker.length);
    this.mostUnderWay = Math.max(this.mostUnderWay, gateway.underWay);
    for (const id of this.atWorker.slice(-20)) {
      const known = this.of(id);
      const unpaid = sum(known.sent) - known.granted;
      expect(unpaid).toBeLessThanOrEqual(eventCreditBytes);
      expect(worker.creditOf(id)).toBeGreaterThanOrEqual(0);
      expect(worker.creditOf(id)).toBeLessThanOrEqual(eventCreditBytes - unpaid);
    }
  }

  /** Answers all that is under way and checks that nothing was lost, doubled or mixed up. */
  finish(): void {
    this.settle();
    while (this.atWorker.length > 0) this.reply();
    this.settle();
    expect([this.gateway.underWay, this.worker.underWay]).toStrictEqual([0, 0]);
    for (const [id, known] of this.known) {
      expect(known, `${id}`).toMatchObject({ requests: 1, replies: 1 });
      expect(Buffer.concat(known.received).equals(Buffer.concat(known.sent)), `${id}`).toBe(true);
    }
  }
}

const even: Weights = { request: 4, event: 8, grant: 6, cancel: 1, reply: 3, deliver: 20, tick: 1 };

describe('two ends, driven at random', () => {
  it.each(Array.from({ length: 20 }, (_, at) => at + 1))('keep their word on walk %i', (seed) => {
    const walk = new Walk(seed);
    for (let step = 0; step < 1000; step += 1) walk.step(even);
    walk.finish();
    expect(walk.known.size).toBeGreaterThan(20);
  });

  it('never have more under way than was agreed', () => {
    const walk = new Walk(100);
    const weights = { ...even, request: 60, event: 1, reply: 1 };
    for (let step = 0; step < 2000; step += 1) walk.step(weights);
    expect(walk.mostUnderWay).toBe(requestsInFlightMax);
    walk.finish();
    for (let step = 0; step < 500; step += 1) walk.step(even);
    walk.finish();
  });

  it('never send more events than there is credit for', () => {
    const walk = new Walk(200);
    const few = { ...even, request: 0, reply: 0, cancel: 0, event: 30, grant: 10 };
    walk.settle();
    for (let count = 0; count < 3; count += 1) walk.request();
    for (let step = 0; step < 2000; step += 1) walk.step(few);
    expect(walk.refusedEvents).toBeGreaterThan(100);
    walk.finish();
    expect(sum(walk.of(1).received)).toBeGreaterThan(4 * eventCreditBytes);
  });
});
