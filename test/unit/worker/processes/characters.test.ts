import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { unfinishedBytes } from '../../../../worker/processes/characters.ts';

/** What a decoder keeps back in the hope of more. */
const keptBack = (bytes: Uint8Array): number => {
  for (let count = 0; count <= 3; count += 1) {
    const head = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes, { stream: true });
    const whole = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(0, bytes.length - count));
    if (head === whole) return count;
  }
  throw new Error('a decoder keeps back at most three bytes');
};

describe('the bytes that may begin a character', () => {
  it('are those that a decoder keeps back', () => {
    const byte = fc.oneof(
      fc.constantFrom(0x61, 0x80, 0x8f, 0x90, 0xa0, 0xbf, 0xc1, 0xc2, 0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xf5),
      fc.nat(255),
    );
    fc.assert(
      fc.property(fc.array(byte, { maxLength: 6 }), (given) => {
        const bytes = Uint8Array.from(given);
        expect(unfinishedBytes(bytes)).toBe(keptBack(bytes));
      }),
      { seed: 5, numRuns: 20_000 },
    );
  });

  it.each(['ä', '€', '🐚'])('are all but the last of %s, and none of it whole', (character) => {
    const bytes = Buffer.from(character);
    expect(unfinishedBytes(bytes)).toBe(0);
    for (let cut = 1; cut < bytes.length; cut += 1) expect(unfinishedBytes(bytes.subarray(0, cut))).toBe(cut);
  });
});
