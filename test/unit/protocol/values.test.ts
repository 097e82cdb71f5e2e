import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { mintOperationId } from '../../../protocol/operation-id.ts';
import { environment, operationId, relativePath } from '../../../protocol/values.ts';

// Many rounds: on a busy machine they take long, and that is no failure.
vi.setConfig({ testTimeout: 120_000 });

const takes = (schema: { safeParse(value: unknown): { success: boolean } }, value: unknown): boolean =>
  schema.safeParse(value).success;
/** Text with what matters in paths and entries far more often than chance would put it there. */
const odd = fc
  .array(
    fc.oneof(fc.constantFrom('/', '.', '..', '\0', '=', '\ud800', '_', '9', '\n', '-'), fc.string({ maxLength: 4 })),
    {
      maxLength: 8,
    },
  )
  .map((parts) => parts.join(''));

describe('relativePath', () => {
  it('takes exactly what is relative, whole, without ".." segments and NUL', () => {
    const seen = { taken: 0, refused: 0 };
    fc.assert(
      fc.property(odd, (path) => {
        const segments = path.split('/');
        const absolute = segments.length > 1 && segments[0] === '';
        const fine = !absolute && segments.every((part) => part !== '..' && !/[\0]/.test(part)) && path.isWellFormed();
        seen[fine ? 'taken' : 'refused'] += 1;
        expect(takes(relativePath, path)).toBe(fine);
      }),
      { seed: 33, numRuns: 3000 },
    );
    expect(seen.taken).toBeGreaterThan(300);
    expect(seen.refused).toBeGreaterThan(300);
  });

  it('never leads above its start when its segments are walked', () => {
    fc.assert(
      fc.property(odd, (path) => {
        if (!takes(relativePath, path)) return;
        expect(new URL(`file:///home/user/${path.split('/').map(encodeURIComponent).join('/')}`).pathname).toMatch(
          /^\/home\/user\//,
        );
      }),
      { seed: 34, numRuns: 2000 },
    );
  });
});

describe('environment', () => {
  it('takes exactly entries that set the variable they name', () => {
    const seen = { taken: 0, refused: 0 };
    const entry = fc.oneof(
      odd,
      fc.tuple(fc.constantFrom('A', '_', 'a9', '9a', 'A B', 'Ä', ''), odd).map(([key, value]) => `${key}=${value}`),
    );
    fc.assert(
      fc.property(entry, (text) => {
        const at = text.indexOf('=');
        const key = text.slice(0, Math.max(at, 0));
        const named = [...key].every(
          (letter, index) => /[A-Za-z_]/.test(letter) || (index > 0 && /[0-9]/.test(letter)),
        );
        const fine = at > 0 && named && !text.includes('\0') && text.isWellFormed();
        seen[fine ? 'taken' : 'refused'] += 1;
        expect(takes(environment, [text])).toBe(fine);
      }),
      { seed: 35, numRuns: 3000 },
    );
    expect(seen.taken).toBeGreaterThan(300);
    expect(seen.refused).toBeGreaterThan(300);
  });
});

describe('operation ids', () => {
  it('that are minted are taken, and no two are the same', () => {
    const minted = Array.from({ length: 10_000 }, () => mintOperationId());
    for (const id of minted) expect(takes(operationId, id)).toBe(true);
    expect(new Set(minted).size).toBe(minted.length);
    expect(new Set(minted.map((id) => id.slice(14, 18))).size).toBeGreaterThan(2000);
    expect(new Set(minted.map((id) => id[19])).size).toBe(4);
  });

  it('sort by the time at which they were minted', () => {
    fc.assert(
      fc.property(fc.nat(2 ** 31 - 1), fc.nat(2 ** 16), fc.integer({ min: 1, max: 2 ** 40 }), (high, low, later) => {
        const now = high * 2 ** 16 + low;
        expect(mintOperationId(now) < mintOperationId(now + later)).toBe(true);
      }),
      { seed: 36, numRuns: 1000 },
    );
  });

  it('hold the time in their first 48 bits', () => {
    expect(mintOperationId(0x0189_0a5d_ac96).slice(0, 15)).toBe('01890a5d-ac96-7');
    const before = Date.now();
    const time = Number.parseInt(mintOperationId().replaceAll('-', '').slice(0, 12), 16);
    expect(time).toBeGreaterThanOrEqual(before);
    expect(time).toBeLessThanOrEqual(Date.now());
  });

  it.each([
    ['another version', '01890a5d-ac96-4cc0-8000-000000000000'],
    ['another variant', '01890a5d-ac96-7cc0-c000-000000000000'],
    ['capitals', '01890A5D-AC96-7CC0-8000-000000000000'],
    ['no hyphens', '01890a5dac967cc08000000000000000'],
    ['braces', '{01890a5d-ac96-7cc0-8000-000000000000}'],
    ['a line end', '01890a5d-ac96-7cc0-8000-000000000000\n'],
    ['nothing', ''],
    ['a number', 1],
  ])('are not taken with %s', (_name, value) => {
    expect(takes(operationId, value)).toBe(false);
  });

  it('are not taken with any character changed to what they can’t have', () => {
    const good = '01890a5d-ac96-7cc0-8000-000000000000';
    for (let at = 0; at < good.length; at += 1)
      expect(takes(operationId, `${good.slice(0, at)}g${good.slice(at + 1)}`), `${at}`).toBe(false);
  });
});
