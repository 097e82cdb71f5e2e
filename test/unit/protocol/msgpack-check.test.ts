import fc from 'fast-check';
import { Packr } from 'msgpackr/pack';
import { describe, expect, it, vi } from 'vitest';
import { encodeFrame, FrameDecoder } from '../../../protocol/frame.ts';
import { frameBytesMax, messageDepthMax } from '../../../protocol/limits.ts';
import { checkMessage, ProtocolViolation } from '../../../protocol/msgpack-check.ts';
import { Random } from './support/random.ts';
import { isPlainData, plain, wireMessage } from './support/wire-values.ts';

// Many rounds: on a busy machine they take long, and that is no failure.
vi.setConfig({ testTimeout: 120_000 });

/** The decoder with the options of the link, without the check in front of it. */
const unchecked = new Packr({ useRecords: false, int64AsType: 'number', copyBuffers: true });
const body = (message: object): Buffer => encodeFrame(message).subarray(4);
const hex = (digits: string): Buffer => Buffer.from(digits.replaceAll(' ', ''), 'hex');
const text = (value: string): Buffer => Buffer.from(value, 'utf8');
const depth = (levels: number): Buffer => Buffer.concat([Buffer.alloc(levels - 1, 0x91), hex('90')]);
const mapDepth = (levels: number): Buffer =>
  Buffer.concat([...new Array<Buffer>(levels - 1).fill(hex('81a161')), hex('80')]);

/** What the decoder alone would take, each of which could mean two things or something that is not data. */
const accepted: readonly (readonly [name: string, bytes: Buffer])[] = [
  ['a doubled key', hex('82 a161 01 a161 02')],
  ['a doubled key written in two ways', hex('82 a161 01 d90161 02')],
  ['a doubled key written as str16', hex('82 a161 01 da000161 02')],
  ['a doubled key written as str32', hex('82 a161 01 db0000000161 02')],
  ['a doubled empty key', hex('82 a0 01 a0 02')],
  ['a doubled key in an inner map', hex('81 a162 82 a161 01 a161 02')],
  ['a doubled key in a map16', hex('de0002 a161 01 a161 02')],
  ['a doubled key in a map32', hex('df00000002 a161 01 a161 02')],
  ['an integer key', hex('81 01 01')],
  ['a negative key', hex('81 ff 01')],
  ['a uint8 key', hex('81 cc01 01')],
  ['a nil key', hex('81 c0 01')],
  ['a boolean key', hex('81 c3 01')],
  ['a float key', hex('81 cb3ff8000000000000 01')],
  ['an integer key that equals a string key', hex('82 01 01 a131 02')],
  ['the key __proto__', Buffer.concat([hex('81 a9'), text('__proto__'), hex('80')])],
  ['the key __proto__ as str8', Buffer.concat([hex('81 d909'), text('__proto__'), hex('80')])],
  ['the key __proto__ in an inner map', Buffer.concat([hex('91 81 a9'), text('__proto__'), hex('81 a161 01')])],
  ['the unused byte 0xc1', hex('c1')],
  ['the unused byte 0xc1 in an array', hex('91 c1')],
  ['undefined (fixext1 type 0)', hex('d4 00 00')],
  ['a bigint (fixext8 type 0x42)', hex('c7 08 42 7fffffffffffffff')],
  ['a set (ext type 0x73)', hex('c7 00 73 91 01')],
  ['an error (ext type 0x65)', hex('c7 00 65 93 a54572726f72 a161 c0')],
  ['a regular expression (ext type 0x78)', hex('c7 00 78 92 a161 a0')],
  ['a typed array (ext type 0x74)', hex('c7 02 74 01 00')],
  ['a timestamp of 4 bytes', hex('d6 ff 00000001')],
  ['a timestamp of 8 bytes', hex('d7 ff 0000000000000001')],
  ['a timestamp of 12 bytes', hex('c7 0c ff 00000000 0000000000000001')],
  ['NaN as float64', hex('cb 7ff8000000000000')],
  ['Infinity as float64', hex('cb 7ff0000000000000')],
  ['-Infinity as float64', hex('cb fff0000000000000')],
  ['NaN as float32', hex('ca 7fc00000')],
  ['Infinity as float32', hex('ca 7f800000')],
  ['-Infinity as float32', hex('ca ff800000')],
  ['uint64 2^53', hex('cf 0020000000000000')],
  ['uint64 2^64-1', hex('cf ffffffffffffffff')],
  ['int64 2^53', hex('d3 0020000000000000')],
  ['int64 -2^53', hex('d3 ffe0000000000000')],
  ['int64 -2^63', hex('d3 8000000000000000')],
  ['a string with a stray byte', hex('a1 ff')],
  ['a string with a stray continuation byte', hex('a1 80')],
  ['an overlong NUL', hex('a2 c080')],
  ['an overlong slash of two bytes', hex('a2 c0af')],
  ['an overlong slash of three bytes', hex('a3 e080af')],
  ['an overlong slash of four bytes', hex('a4 f08080af')],
  ['an encoded high surrogate', hex('a3 eda080')],
  ['an encoded low surrogate', hex('a3 edbfbf')],
  ['an encoded surrogate pair', hex('a6 eda080edb080')],
  ['a code point over U+10FFFF', hex('a4 f4908080')],
  ['a sequence that is cut off', hex('a2 e282')],
  ['an invalid byte in a long string', Buffer.concat([hex('d9 64'), Buffer.alloc(99, 0x61), hex('ff')])],
  ['a key with a stray byte', hex('81 a1 ff 01')],
  ['a key with an overlong slash', hex('81 a2 c0af 01')],
  ['a key with a surrogate', hex('81 a3 eda080 01')],
  ['two keys that only U+FFFD would tell apart', hex('82 a1 ff 01 a1 fe 02')],
  ['arrays 17 deep', depth(17)],
  ['maps 17 deep', mapDepth(17)],
  ['arrays 500 deep', depth(500)],
];

/** What the decoder refuses too, but late, or after taking memory for it. */
const refusedByBoth: readonly (readonly [name: string, bytes: Buffer])[] = [
  ['nothing', Buffer.alloc(0)],
  ['a second value', hex('01 02')],
  ['bytes after a map', hex('81 a161 01 00')],
  ['an array32 of 2^32-1', hex('dd ffffffff')],
  ['an array32 of 2^32-1 with one item', hex('dd ffffffff 01')],
  ['an array16 of 2^16-1', hex('dc ffff')],
  ['a map32 of 2^32-1', hex('df ffffffff')],
  ['a map32 of 2^32-1 with one entry', hex('df ffffffff a161 01')],
  ['a map16 of 2^16-1', hex('de ffff')],
  ['a str32 of 2^32-1', hex('db ffffffff 61')],
  ['a bin32 of 2^32-1', hex('c6 ffffffff 61')],
  ['a map key of 2^32-1 bytes', hex('81 db ffffffff 61')],
  ['a map without its last value', hex('82 a161 01 a162')],
  ['huge lengths one in the other', hex('dd ffffffff'.repeat(16))],
  ['a map as a key', hex('81 80 01')],
  ['an array as a key', hex('81 91 01 01')],
  ['bytes as a key', hex('81 c4 01 61 01')],
  ...[0xc7, 0xc8, 0xc9, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8].map(
    (tag) => [`an extension 0x${tag.toString(16)} of an unknown type`, extension(tag, 5)] as const,
  ),
];

function extension(tag: number, type: number): Buffer {
  const fixed: Record<number, number> = { 212: 1, 213: 2, 214: 4, 215: 8, 216: 16 };
  const length = fixed[tag];
  if (length !== undefined) return Buffer.concat([Buffer.of(tag, type), Buffer.alloc(length, 1)]);
  const sizeBytes = 1 << (tag - 0xc7);
  const size = Buffer.alloc(sizeBytes);
  size.writeUIntBE(1, 0, sizeBytes);
  return Buffer.concat([Buffer.of(tag), size, Buffer.of(type, 1)]);
}

describe('checkMessage accepts what encodeFrame makes', () => {
  it('and the decoder gives the same value back', () => {
    fc.assert(
      fc.property(wireMessage, (message) => {
        const bytes = body(message);
        checkMessage(bytes);
        expect(plain(unchecked.unpack(bytes))).toStrictEqual(plain(message));
      }),
      { seed: 30, numRuns: 500 },
    );
  });

  it.each([
    ['nil', 'c0'],
    ['false', 'c2'],
    ['true', 'c3'],
    ['the largest uint8', 'cc ff'],
    ['the largest uint16', 'cd ffff'],
    ['the largest uint32', 'ce ffffffff'],
    ['the largest safe uint64', 'cf 001fffffffffffff'],
    ['the least int8', 'd0 80'],
    ['the least int16', 'd1 8000'],
    ['the least int32', 'd2 80000000'],
    ['the largest safe int64', 'd3 001fffffffffffff'],
    ['the least safe int64', 'd3 ffe0000000000001'],
    ['a negative fixint', 'e0'],
    ['a float32', 'ca 3fc00000'],
    ['a float64', 'cb 3ff8000000000000'],
    ['an empty str8', 'd9 00'],
    ['an empty str16', 'da 0000'],
    ['an empty str32', 'db 00000000'],
    ['an empty bin8', 'c4 00'],
    ['an empty bin16', 'c5 0000'],
    ['an empty bin32', 'c6 00000000'],
    ['a bin that is not UTF-8', 'c4 02 fffe'],
    ['an empty array16', 'dc 0000'],
    ['an empty array32', 'dd 00000000'],
    ['an empty map16', 'de 0000'],
    ['an empty map32', 'df 00000000'],
    ['one key in two maps', '92 81 a161 01 81 a161 01'],
    ['a key that an outer map has too', '81 a161 81 a161 01'],
    ['a value that equals its key', '82 a161 a162 a162 a161'],
  ])('%s', (_name, digits) => {
    const bytes = hex(digits);
    checkMessage(bytes);
    expect(isPlainData(unchecked.unpack(bytes))).toBe(true);
  });

  it(`nesting of ${messageDepthMax}`, () => {
    expect(messageDepthMax).toBe(16);
    checkMessage(depth(16));
    checkMessage(mapDepth(16));
  });
});

describe('checkMessage refuses', () => {
  it.each(accepted)('%s, which the decoder alone would take', (_name, bytes) => {
    expect(() => unchecked.unpack(bytes)).not.toThrow();
    expect(() => checkMessage(bytes)).toThrow(ProtocolViolation);
  });

  it.each(refusedByBoth)('%s', (_name, bytes) => {
    expect(() => checkMessage(bytes)).toThrow(ProtocolViolation);
  });

  it('every extension type, in every way of writing one', () => {
    for (let type = 0; type < 256; type += 1)
      for (const tag of [0xc7, 0xc8, 0xc9, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8])
        expect(() => checkMessage(extension(tag, type)), `${tag} ${type}`).toThrow(ProtocolViolation);
  });

  it('a message that is cut off at any byte', () => {
    const whole = body({
      kind: 'request',
      id: 70_000,
      operationId: 'x'.repeat(300),
      params: { list: [1.5, -3, 2 ** 40, null, true, 'ä€😀'], data: new Uint8Array(300), deep: [[{ a: {} }]] },
    });
    checkMessage(whole);
    for (let length = 0; length < whole.length; length += 1)
      expect(() => checkMessage(whole.subarray(0, length)), `${length}`).toThrow(ProtocolViolation);
  });

  it('huge lengths without taking memory for them', () => {
    const huge = refusedByBoth.filter(([, bytes]) => bytes.includes(0xff));
    expect(huge.length).toBeGreaterThan(8);
    const before = process.memoryUsage();
    for (const [, bytes] of huge) expect(() => checkMessage(bytes)).toThrow(ProtocolViolation);
    const after = process.memoryUsage();
    expect(after.arrayBuffers - before.arrayBuffers).toBeLessThan(16 * 1024 * 1024);
    expect(after.heapTotal - before.heapTotal).toBeLessThan(64 * 1024 * 1024);
  });
});

describe('strings that begin with U+FEFF', () => {
  const roundTrip = (message: object): unknown => [...new FrameDecoder().push(encodeFrame(message))][0];

  it.each([0, 1, 15, 31, 61, 62, 70, 300, 70_000])('keep it ahead of %i more characters', (length) => {
    const value = `\ufeff${'x'.repeat(length)}`;
    expect(roundTrip({ value })).toStrictEqual({ value });
  });

  it('stay different keys', () => {
    const key = 'k'.repeat(100);
    const message = { [key]: 1, [`\ufeff${key}`]: 2 };
    expect(Object.keys(roundTrip(message) as object)).toStrictEqual(Object.keys(message));
  });
});

describe('checkMessage against arbitrary bytes', () => {
  /** Judges one input; true if it was accepted. */
  const judge = (bytes: Buffer): boolean => {
    try {
      checkMessage(bytes);
    } catch (error) {
      if (error instanceof ProtocolViolation) return false;
      throw new Error(`not a violation, for ${bytes.toString('hex')}`, { cause: error });
    }
    const value: unknown = unchecked.unpack(bytes);
    if (!isPlainData(value)) throw new Error(`not plain data: ${bytes.toString('hex')}`);
    return true;
  };

  it('throws a violation, or the decoder makes plain data of them', () => {
    const random = new Random(1);
    let taken = 0;
    for (let round = 0; round < 40_000; round += 1) if (judge(random.bytes(1 + random.below(24)))) taken += 1;
    expect(taken).toBeGreaterThan(500);
  });

  it('the same of bytes made of the interesting tags', () => {
    const random = new Random(2);
    const tags = [...hex('80 81 82 8f 90 91 92 a0 a1 a2 a9 c0 c1 c2 c4 c7 ca cb cc cf d3 d4 d6 d9 db dc dd de df ff')];
    let taken = 0;
    for (let round = 0; round < 40_000; round += 1) {
      const bytes = random.bytes(1 + random.below(16));
      for (let at = 0; at < bytes.length; at += 1) {
        const kind = random.below(4);
        if (kind < 2) bytes[at] = random.pick(tags);
        else if (kind < 3) bytes[at] = random.below(3);
      }
      if (judge(bytes)) taken += 1;
    }
    expect(taken).toBeGreaterThan(500);
  });

  it('the same of valid messages with a few bytes changed, taken out, put in or moved', () => {
    const random = new Random(3);
    const valid = fc.sample(wireMessage, { seed: 4, numRuns: 200 }).map(body);
    let taken = 0;
    for (let round = 0; round < 40_000; round += 1) {
      let bytes = Buffer.from(random.pick(valid));
      if (bytes.length > 400) bytes = bytes.subarray(0, 400);
      for (let change = random.below(3); change >= 0; change -= 1) {
        const at = random.below(bytes.length + 1);
        const kind = random.below(5);
        if (kind === 0) bytes[at] = random.below(256);
        else if (kind === 1) bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1 + random.below(4))]);
        else if (kind === 2) bytes = Buffer.concat([bytes.subarray(0, at), random.bytes(1), bytes.subarray(at)]);
        else if (kind === 3) bytes = Buffer.concat([bytes.subarray(at), bytes.subarray(0, at)]);
        else bytes[at] = (bytes[at] ?? 0) ^ (1 << random.below(8));
      }
      if (judge(bytes)) taken += 1;
    }
    expect(taken).toBeGreaterThan(500);
  });
});

describe('the work of checkMessage', () => {
  /** Counts reads and the bytes of parts looked at: a measure that no clock disturbs. */
  const effort = (bytes: Buffer): number => {
    let count = 0;
    const counted = Buffer.from(bytes);
    Object.assign(counted, {
      readUIntBE(at: number, size: number): number {
        count += size;
        return bytes.readUIntBE(at, size);
      },
      subarray(start: number, end: number): Buffer {
        count += end - start;
        return bytes.subarray(start, end);
      },
    });
    checkMessage(counted);
    return count;
  };
  const size32 = (tag: number, count: number): Buffer => {
    const made = Buffer.alloc(5, tag);
    made.writeUInt32BE(count, 1);
    return made;
  };
  const worst: readonly (readonly [name: string, (count: number) => Buffer])[] = [
    ['many small values', (count) => Buffer.concat([size32(0xdd, count), Buffer.alloc(count, 0xc0)])],
    ['many empty maps', (count) => Buffer.concat([size32(0xdd, count), Buffer.alloc(count, 0x80)])],
    [
      'many keys',
      (count) => {
        const entries = Array.from({ length: count }, (_, at) =>
          Buffer.from(`\xa4${at.toString(36).padStart(4, '0')}\0`, 'latin1'),
        );
        return Buffer.concat([size32(0xdf, count), ...entries]);
      },
    ],
    ['long strings', (count) => Buffer.concat([size32(0xdb, count), Buffer.alloc(count, 0x61)])],
    [
      'towers of arrays',
      (count) => Buffer.concat([size32(0xdd, count), ...new Array<Buffer>(count).fill(depth(messageDepthMax - 1))]),
    ],
  ];

  it.each(worst)('grows no faster than the message: %s', (_name, make) => {
    const small = make(100);
    const large = make(100 * 64);
    expect(large.length).toBeLessThan(frameBytesMax);
    expect(effort(large) / large.length).toBeLessThan((effort(small) / small.length) * 1.5);
    expect(effort(large)).toBeLessThanOrEqual(large.length);
  });
});

it('more values than a message may have are refused, as many as it may have are taken', () => {
  const nils = (count: number): Buffer => {
    const bytes = Buffer.alloc(5 + count, 0xc0);
    bytes.writeUInt8(0xdd, 0);
    bytes.writeUInt32BE(count, 1);
    return bytes;
  };
  expect(checkMessage(nils(131_071))).toHaveLength(131_071);
  expect(() => checkMessage(nils(131_072))).toThrow(ProtocolViolation);
});
