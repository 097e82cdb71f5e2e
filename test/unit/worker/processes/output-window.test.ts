import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OutputWindow } from '../../../../worker/processes/output-window.ts';

describe('an output window', () => {
  it('holds exactly the newest bytes, whatever comes in whatever pieces', () => {
    const pieces = fc.array(fc.uint8Array({ maxLength: 9_000 }), { maxLength: 20 });
    fc.assert(
      fc.property(pieces, fc.integer({ min: 1, max: 20_000 }), (given, size) => {
        const window = new OutputWindow(size);
        let all = Buffer.alloc(0);
        for (const piece of given) {
          window.append(Buffer.from(piece));
          all = Buffer.concat([all, piece]);
          expect(window.end).toBe(all.length);
          expect(window.retainedFrom).toBe(Math.max(0, all.length - size));
          expect(window.read(window.retainedFrom, size).equals(all.subarray(window.retainedFrom))).toBe(true);
        }
        const middle = Math.floor((window.retainedFrom + window.end) / 2);
        expect(window.read(middle, 7).equals(all.subarray(middle, middle + 7))).toBe(true);
      }),
      { seed: 5, numRuns: 200 },
    );
  });
});
