import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeEnd, encodeRun, encodeStop, type LaunchPlan } from '../../../worker/runs/plan.ts';
import { readRun } from './support/wire.ts';

const plan: LaunchPlan = {
  uid: 930_001,
  program: '/bin/true',
  space: '/w/u930001',
  directory: 'a/b',
  args: ['/bin/true', '', 'ä'],
  environment: ['HOME=/w/u930001/home', 'E='],
  timeLimitMs: 0x1_0000_0002,
  outputBytesMax: 262_144,
  processesMax: 144,
  fileBytesMax: Number.MAX_SAFE_INTEGER,
  addressBytesMax: 0,
  termGraceMs: 300,
  streams: { rows: 258, cols: 80 },
};

/** Text without NUL that survives UTF-8, as every string of a plan is by then. */
const text = fc.string({ unit: 'binary', maxLength: 20 }).filter((value) => !value.includes('\0'));
const whole = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });
const size = fc.integer({ min: 1, max: 65_535 });

const plans: fc.Arbitrary<LaunchPlan> = fc.record({
  uid: fc.integer({ min: 20_000, max: 1_020_000 }),
  program: text.map((value) => `/${value}`),
  space: text.map((value) => `/${value}`),
  directory: text,
  args: fc.array(text, { minLength: 1, maxLength: 6 }),
  environment: fc.array(
    text.map((value) => `KEY=${value}`),
    { maxLength: 6 },
  ),
  timeLimitMs: whole,
  outputBytesMax: whole,
  processesMax: whole,
  fileBytesMax: whole,
  addressBytesMax: whole,
  termGraceMs: fc.integer({ min: 0, max: 5000 }),
  streams: fc.oneof(
    fc.constant('empty' as const),
    fc.constant('pipes' as const),
    fc.record({ rows: size, cols: size }, { noNullPrototype: true }),
  ),
});

const encoded = (given: LaunchPlan): Buffer => {
  const bytes = encodeRun(given);
  if (bytes === undefined) throw new Error('the plan is too large');
  return bytes;
};

describe('the launch plan', () => {
  it('has the layout of wire.h, byte by byte', () => {
    const strings = '/bin/true\0/w/u930001\0a/b\0/bin/true\0\0ä\0HOME=/w/u930001/home\0E=\0';
    const length = Buffer.byteLength(strings);
    const hex = [
      '00000001', // MSG_RUN
      (72 + length).toString(16).padStart(8, '0'),
      '00000002', // WIRE_VERSION
      '000e30d1', // uid 930001
      '0000000100000002', // time limit
      '0000000000040000', // output cap
      '0000000000000090', // processes
      '001fffffffffffff', // file size
      '0000000000000000', // address space
      '0000012c', // grace
      '00000003', // arguments
      '00000002', // environment entries
      length.toString(16).padStart(8, '0'),
      '00000002', // a terminal
      '01020050', // its rows and columns
      Buffer.from(strings).toString('hex'),
    ].join('');
    expect(encoded(plan).toString('hex')).toBe(hex);
  });

  it('is read back as it was given, whatever it holds', () => {
    fc.assert(
      fc.property(plans, (given) => {
        const { version, ...read } = readRun(encoded(given));
        expect(version).toBe(2);
        expect(read).toStrictEqual({
          ...given,
          timeLimitMs: BigInt(given.timeLimitMs),
          outputBytesMax: BigInt(given.outputBytesMax),
          processesMax: BigInt(given.processesMax),
          fileBytesMax: BigInt(given.fileBytesMax),
          addressBytesMax: BigInt(given.addressBytesMax),
        });
      }),
      { seed: 20, numRuns: 500 },
    );
  });

  it('is made up to the largest size that the spawner takes, and not beyond', () => {
    const fixed = encoded({ ...plan, args: [''] }).length - 8;
    const room = 4_194_304 - fixed;
    const largest = encodeRun({ ...plan, args: ['x'.repeat(room)] });
    expect(largest?.readUInt32BE(4)).toBe(4_194_304);
    expect(encodeRun({ ...plan, args: ['x'.repeat(room + 1)] })).toBeUndefined();
    // Bytes count, not characters.
    expect(encodeRun({ ...plan, args: ['ä'.repeat(room / 2 + 1)] })).toBeUndefined();
  });
});

describe('the other requests to the spawner', () => {
  it('stop is a header without a body', () => {
    expect(encodeStop().toString('hex')).toBe('0000000200000000');
  });

  it('end names the uid', () => {
    expect(encodeEnd(930_001).toString('hex')).toBe('0000000300000004000e30d1');
  });
});
