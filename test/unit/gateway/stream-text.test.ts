import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { StreamText } from '../../../gateway/stream-text.ts';

/** Cuts bytes into pieces of the given lengths and gathers them. */
const gathered = (bytes: Uint8Array, lengths: readonly number[]): StreamText => {
  const text = new StreamText(bytes.length);
  let at = 0;
  for (const length of lengths) {
    text.append(bytes.subarray(at, at + length));
    at += length;
  }
  text.append(bytes.subarray(at));
  return text;
};

describe('text of a stream', () => {
  test('is whole however it was cut into pieces', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.array(fc.nat(9)), (original, lengths) => {
        const bytes = Buffer.from(original);
        expect(
          gathered(
            bytes,
            lengths.filter((length) => length <= bytes.length),
          ).text(false),
        ).toBe(original);
      }),
    );
  });

  test('that was cut is a beginning of the original, with all its whole characters and nothing made up', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.nat(), (original, where) => {
        fc.pre(original.isWellFormed());
        const bytes = Buffer.from(original);
        const kept = bytes.subarray(0, where % (bytes.length + 1));
        const text = gathered(kept, []).text(true);
        expect(original.startsWith(text)).toBe(true);
        expect(kept.length - Buffer.byteLength(text)).toBeLessThan(4);
        const next = [...original.slice(text.length)][0] ?? '';
        expect(kept.length - Buffer.byteLength(text) < Buffer.byteLength(next) || next === '').toBe(true);
      }),
    );
  });

  test('has U+FFFD for bytes that are not valid, with and without a cut', () => {
    fc.assert(
      fc.property(fc.uint8Array(), fc.boolean(), (bytes, cut) => {
        const expected = Buffer.from(bytes).toString();
        const text = gathered(bytes, []).text(cut);
        // A cut may leave out the last, incomplete character; nothing else differs.
        expect(text === expected || (cut && `${text}\ufffd` === expected)).toBe(true);
      }),
    );
  });

  test('keeps a byte order mark', () => {
    const bytes = Buffer.from('\ufeffx');
    expect(gathered(bytes, []).text(true)).toBe('\ufeffx');
    expect(gathered(bytes, []).text(false)).toBe('\ufeffx');
  });

  test('is refused beyond its limit', () => {
    const text = new StreamText(2);
    text.append(Buffer.from('ab'));
    expect(() => text.append(Buffer.from('c'))).toThrow('more output');
  });

  test('is not kept once it is forgotten, but still counted', () => {
    const text = new StreamText(10);
    text.append(Buffer.from('ab'));
    text.forget();
    text.append(Buffer.from('cd'));
    expect([text.length, text.text(false)]).toEqual([4, '']);
  });

  test('of a limit of 0 is empty', () => {
    expect(new StreamText(0).text(true)).toBe('');
  });

  test('does not change when its sender uses the memory again', () => {
    const text = new StreamText(10);
    const piece = Buffer.from('ab');
    text.append(piece);
    piece.fill(0x78);
    expect(text.text(false)).toBe('ab');
  });
});
