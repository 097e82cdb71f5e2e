import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { eventBytesMax } from '../../../protocol/limits.ts';
import { Outputs } from '../../../worker/outputs.ts';

/** A channel with the credit that a test gives it; it refuses what a link would refuse. */
class Channel {
  left = 0;
  readonly sent: { stream: string; data: Buffer }[] = [];

  credit(): number {
    return this.left;
  }

  send(stream: string, data: Uint8Array<ArrayBuffer>): void {
    if (data.length === 0) throw new Error('an event without bytes');
    if (data.length > this.left) throw new Error('more than there is credit for');
    if (data.length > eventBytesMax) throw new Error('an event over the limit');
    this.left -= data.length;
    this.sent.push({ stream, data: Buffer.from(data) });
  }

  text(): string {
    return this.sent.map(({ stream, data }) => `${stream}:${data.toString()}`).join(' ');
  }
}

const setup = (credit = 0) => {
  const channel = new Channel();
  channel.left = credit;
  return { channel, outputs: new Outputs(channel, ['stdout', 'stderr']) };
};

const unused = (): void => {
  throw new Error('resumed without having been paused');
};

describe('the outputs of a request', () => {
  it('go out at once while there is credit, and the producer need not pause', () => {
    const { channel, outputs } = setup(100);
    expect(outputs.write('stdout', Buffer.from('one'), unused)).toBe(true);
    expect(outputs.write('stderr', Buffer.from('two'), unused)).toBe(true);
    expect(channel.text()).toBe('stdout:one stderr:two');
  });

  it('wait for credit, keep their order across streams, and resume the producer once', () => {
    const { channel, outputs } = setup(4);
    const resume = vi.fn();
    expect(outputs.write('stdout', Buffer.from('abcdef'), resume)).toBe(false);
    expect(outputs.write('stderr', Buffer.from('XY'), resume)).toBe(false);
    expect(channel.text()).toBe('stdout:abcd');
    channel.left = 3;
    outputs.flush();
    expect(channel.text()).toBe('stdout:abcd stdout:ef stderr:X');
    expect(resume).not.toHaveBeenCalled();
    channel.left = 10;
    outputs.flush();
    expect(channel.text()).toBe('stdout:abcd stdout:ef stderr:X stderr:Y');
    expect(resume).toHaveBeenCalledTimes(1);
    outputs.flush();
    expect(resume).toHaveBeenCalledTimes(1);
  });

  it('that wait are their own, whatever becomes of the place that they came from', () => {
    const { channel, outputs } = setup(1);
    const place = Buffer.from('abc');
    outputs.write('stdout', place, vi.fn());
    place.fill('X');
    outputs.write('stdout', place, vi.fn());
    place.fill('Y');
    channel.left = 10;
    outputs.flush();
    expect(channel.text()).toBe('stdout:a stdout:bc stdout:XXX');
  });

  it('are cut into events of at most the limit', () => {
    const { channel, outputs } = setup(10 * eventBytesMax);
    outputs.write('stdout', Buffer.alloc(2 * eventBytesMax + 1), unused);
    expect(channel.sent.map(({ data }) => data.length)).toStrictEqual([eventBytesMax, eventBytesMax, 1]);
  });

  it('all arrive, in order, whatever the schedule of credit', () => {
    const step = fc.oneof(
      fc.record({ write: fc.constantFrom('stdout', 'stderr'), size: fc.integer({ min: 1, max: 200_000 }) }),
      fc.record({ grant: fc.integer({ min: 1, max: 262_144 }) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const { channel, outputs } = setup();
        const written: { stream: string; data: Buffer }[] = [];
        let serial = 0;
        let paused = false;
        for (const one of steps) {
          if ('grant' in one) {
            channel.left += one.grant;
            outputs.flush();
          } else {
            // No two neighbouring bytes of the whole are equal by accident: a swap shows.
            const data = Buffer.alloc(one.size);
            for (let at = 0; at < data.length; at += 1) {
              serial = (serial + 7) % 251;
              data[at] = serial;
            }
            written.push({ stream: one.write, data });
            const went = outputs.write(one.write, data, () => {
              paused = false;
            });
            if (!went) paused = true;
          }
          if (paused) expect(channel.left, 'pauses only when all credit is used').toBe(0);
        }
        channel.left = Number.MAX_SAFE_INTEGER;
        outputs.flush();
        expect(paused).toBe(false);
        const joined = (parts: readonly { stream: string; data: Buffer }[], stream: string): Buffer =>
          Buffer.concat(parts.filter((part) => part.stream === stream).map(({ data }) => data));
        for (const stream of ['stdout', 'stderr']) {
          expect(joined(channel.sent, stream).equals(joined(written, stream))).toBe(true);
          expect(outputs.ends()[stream]).toStrictEqual({ bytes: joined(written, stream).length, cut: false });
        }
        const all = (parts: readonly { data: Buffer }[]): Buffer => Buffer.concat(parts.map(({ data }) => data));
        expect(all(channel.sent).equals(all(written))).toBe(true);
      }),
      { seed: 22, numRuns: 200 },
    );
  });

  it('count what was written of each stream, and know which was cut', () => {
    const { outputs } = setup(100);
    outputs.write('stdout', Buffer.from('abc'), unused);
    outputs.markCut('stderr');
    outputs.markCut('no such stream');
    expect(outputs.ends()).toStrictEqual({ stdout: { bytes: 3, cut: false }, stderr: { bytes: 0, cut: true } });
  });

  it('refuse a stream that the operation does not have', () => {
    const { outputs } = setup(100);
    expect(() => outputs.write('log', Buffer.from('x'), unused)).toThrow('a stream that it does not have');
  });

  it('tell for how long nothing could be sent', () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    try {
      const { channel, outputs } = setup(2);
      expect(outputs.stalledMs(performance.now())).toBe(0);
      outputs.write('stdout', Buffer.from('abcd'), () => undefined);
      vi.advanceTimersByTime(1_000);
      expect(outputs.stalledMs(performance.now())).toBe(1_000);
      outputs.flush();
      vi.advanceTimersByTime(500);
      expect(outputs.stalledMs(performance.now()), 'a flush without credit is no progress').toBe(1_500);
      channel.left = 1;
      outputs.flush();
      vi.advanceTimersByTime(200);
      expect(outputs.stalledMs(performance.now()), 'a sent byte is progress').toBe(200);
      channel.left = 9;
      outputs.flush();
      vi.advanceTimersByTime(9_000);
      expect(outputs.stalledMs(performance.now())).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  it('`sent` resolves when nothing waits any more, and not before', async () => {
    const { channel, outputs } = setup(1);
    await outputs.sent();
    outputs.write('stdout', Buffer.from('ab'), () => undefined);
    let done = false;
    const sent = outputs.sent().then(() => {
      done = true;
    });
    await new Promise(setImmediate);
    expect(done).toBe(false);
    channel.left = 1;
    outputs.flush();
    await sent;
    expect(done).toBe(true);
  });

  it('once discarded are dropped, let the producer go on, and hold up nobody', async () => {
    const { channel, outputs } = setup();
    const resume = vi.fn();
    expect(outputs.write('stdout', Buffer.from('never read'), resume)).toBe(false);
    const sent = outputs.sent();
    outputs.discard();
    await sent;
    expect(resume).toHaveBeenCalledTimes(1);
    expect(outputs.write('stdout', Buffer.alloc(1_000_000), unused)).toBe(true);
    await outputs.sent();
    channel.left = 1_000_000;
    outputs.flush();
    expect(channel.sent).toStrictEqual([]);
    expect(outputs.stalledMs(performance.now() + 60_000)).toBe(0);
  });

  it('resume a producer that writes again at once, and is paused again at once', () => {
    const { channel, outputs } = setup();
    const second = vi.fn();
    const first = vi.fn(() => {
      expect(outputs.write('stdout', Buffer.from('b'), second)).toBe(false);
    });
    outputs.write('stdout', Buffer.from('a'), first);
    channel.left = 1;
    outputs.flush();
    expect(first).toHaveBeenCalledTimes(1);
    channel.left = 1;
    outputs.flush();
    expect(channel.text()).toBe('stdout:a stdout:b');
    expect(second).toHaveBeenCalledTimes(1);
  });

  it('do not wait for credit for a piece without bytes', () => {
    const { outputs } = setup();
    expect(outputs.write('stdout', Buffer.alloc(0), unused)).toBe(true);
    expect(outputs.stalledMs(performance.now() + 60_000)).toBe(0);
  });
});
