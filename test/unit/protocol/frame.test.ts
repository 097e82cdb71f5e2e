import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { encodeFrame, FrameDecoder } from '../../../protocol/frame.ts';
import { frameBytesMax } from '../../../protocol/limits.ts';
import { ProtocolViolation } from '../../../protocol/msgpack-check.ts';
import { Random } from './support/random.ts';
import { plain, wireMessage } from './support/wire-values.ts';

// Many rounds: on a busy machine they take long, and that is no failure.
vi.setConfig({ testTimeout: 120_000 });

const prefix = (length: number): Buffer => {
  const made = Buffer.alloc(4);
  made.writeUInt32BE(length, 0);
  return made;
};

/** What a body has beside the bytes of its one field. */
const around = encodeFrame({ a: new Uint8Array(70_000) }).length - 4 - 70_000;
/** A message whose body has exactly `bytes` bytes. */
const messageOf = (bytes: number): { a: Uint8Array } => ({ a: new Uint8Array(bytes - around) });

describe('the frame decoder', () => {
  it('gives the same messages wherever the stream is cut', () => {
    fc.assert(
      fc.property(fc.array(wireMessage, { maxLength: 5 }), fc.integer(), (messages, seed) => {
        const random = new Random(seed);
        let rest = Buffer.concat(messages.map(encodeFrame));
        const decoder = new FrameDecoder();
        const decoded: unknown[] = [];
        const longest = random.pick([1, 2, 5, 50, 5000]);
        while (rest.length > 0) {
          const cut = 1 + random.below(longest);
          decoded.push(...decoder.push(rest.subarray(0, cut)));
          rest = rest.subarray(cut);
        }
        expect(decoded.map(plain)).toStrictEqual(messages.map(plain));
      }),
      { seed: 31, numRuns: 300 },
    );
  });

  it('gives the same for two chunks, whatever the place of the cut', () => {
    const messages = [{ a: 1 }, { b: 'two', c: [3] }, { d: new Uint8Array(20) }];
    const stream = Buffer.concat(messages.map(encodeFrame));
    for (let cut = 0; cut <= stream.length; cut += 1) {
      const decoder = new FrameDecoder();
      const first = [...decoder.push(stream.subarray(0, cut))];
      const second = [...decoder.push(stream.subarray(cut))];
      expect([...first, ...second].map(plain), `${cut}`).toStrictEqual(messages.map(plain));
    }
  });

  it('gives a message as soon as its last byte is in, and not before', () => {
    const frame = encodeFrame({ a: 'b' });
    const decoder = new FrameDecoder();
    expect([...decoder.push(frame.subarray(0, -1))]).toStrictEqual([]);
    expect([...decoder.push(frame.subarray(-1))]).toStrictEqual([{ a: 'b' }]);
  });

  it('keeps no hold on the chunk: the reader may use its memory again', () => {
    const chunk = encodeFrame({ data: Uint8Array.of(1, 2, 3), text: 'abc' });
    const [message] = [...new FrameDecoder().push(chunk)];
    chunk.fill(0);
    expect(plain(message)).toStrictEqual({ data: Uint8Array.of(1, 2, 3), text: 'abc' });
  });

  it.each([0, frameBytesMax + 1, 0x7fff_ffff, 0xffff_ffff])('refuses a length of %i', (length) => {
    for (const rest of [Buffer.alloc(0), Buffer.alloc(10)]) {
      const decoder = new FrameDecoder();
      expect(() => [...decoder.push(Buffer.concat([prefix(length), rest]))]).toThrow(ProtocolViolation);
    }
  });

  it('refuses a length over the limit before memory is taken for it', () => {
    const kept: FrameDecoder[] = [];
    const before = process.memoryUsage().arrayBuffers;
    for (let round = 0; round < 100; round += 1) {
      const decoder = new FrameDecoder();
      kept.push(decoder);
      expect(() => [...decoder.push(prefix(frameBytesMax + 1))]).toThrow(ProtocolViolation);
    }
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(frameBytesMax);
    expect(kept).toHaveLength(100);
  });

  it('says the length is wrong with the fourth byte, not later', () => {
    const decoder = new FrameDecoder();
    const bytes = prefix(frameBytesMax + 1);
    for (let at = 0; at < 3; at += 1) expect([...decoder.push(bytes.subarray(at, at + 1))]).toStrictEqual([]);
    expect(() => [...decoder.push(bytes.subarray(3))]).toThrow(ProtocolViolation);
  });

  it('checks the bytes before they are decoded, whole or in pieces', () => {
    const bad = Buffer.concat([prefix(7), Buffer.from('82a16101a16102', 'hex')]);
    expect(() => [...new FrameDecoder().push(bad)]).toThrow(ProtocolViolation);
    const decoder = new FrameDecoder();
    expect([...decoder.push(bad.subarray(0, 6))]).toStrictEqual([]);
    expect(() => [...decoder.push(bad.subarray(6))]).toThrow(ProtocolViolation);
  });

  it('gives the good messages that come ahead of a bad one', () => {
    const decoder = new FrameDecoder();
    const seen: unknown[] = [];
    expect(() => {
      for (const message of decoder.push(Buffer.concat([encodeFrame({ a: 1 }), prefix(0)]))) seen.push(message);
    }).toThrow(ProtocolViolation);
    expect(seen).toStrictEqual([{ a: 1 }]);
  });
});

describe('encodeFrame', () => {
  it('puts the length of the body first, big-endian', () => {
    expect(encodeFrame({ a: 1 }).subarray(0, 4)).toStrictEqual(prefix(encodeFrame({ a: 1 }).length - 4));
  });

  it(`takes a body of exactly ${4 * 1024 * 1024} bytes, which is decoded again`, () => {
    expect(frameBytesMax).toBe(4 * 1024 * 1024);
    const frame = encodeFrame(messageOf(frameBytesMax));
    expect(frame.length).toBe(4 + frameBytesMax);
    const [message] = [...new FrameDecoder().push(frame)];
    expect((message as { a: Uint8Array }).a.length).toBe(frameBytesMax - around);
  });

  it('throws RangeError for one byte more', () => {
    expect(() => encodeFrame(messageOf(frameBytesMax + 1))).toThrow(RangeError);
  });

  it('gives memory of its own: the next frame does not change the last', () => {
    const first = encodeFrame({ a: 'first' });
    const copy = Buffer.from(first);
    encodeFrame({ a: 'other' });
    expect(first).toStrictEqual(copy);
  });

  it('leaves out what is undefined, as JSON does', () => {
    const [message] = [...new FrameDecoder().push(encodeFrame({ a: 1, b: undefined }))];
    expect(message).toStrictEqual({ a: 1 });
  });
});
