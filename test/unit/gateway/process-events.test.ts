import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { eventsOf, positionOf, type Turn } from '../../../gateway/process-events.ts';
import { Refusal } from '../../../protocol/errors.ts';

const offset = fc.nat(999_999_999_999_999);
const isRefused = (text: string): boolean => {
  try {
    positionOf(text);
    return false;
  } catch (error) {
    expect(error).toBeInstanceOf(Refusal);
    expect((error as Refusal).code).toBe('bad_request');
    // What was sent is not told again.
    if (text.length > 3) expect((error as Refusal).message).not.toContain(text);
    return true;
  }
};

describe('where a stream goes on', () => {
  it('is what the id of an event says', () => {
    fc.assert(
      fc.property(offset, offset, (stdout, stderr) => {
        expect(positionOf(`${stdout}.${stderr}`)).toStrictEqual({ stdout, stderr });
      }),
    );
    expect(positionOf(undefined)).toStrictEqual({});
  });

  it('is nothing else: whatever is taken can be told again as the same', () => {
    const odd = fc
      .array(
        fc.oneof(
          fc.constantFrom('.', '0', '7', '-', '+', 'e', ' ', '\n', 'Infinity', 'NaN', '0x1', '٣'),
          fc.nat(9_999_999).map(String),
          fc.string({ maxLength: 2 }),
        ),
        { maxLength: 5 },
      )
      .map((parts) => parts.join(''));
    fc.assert(
      fc.property(odd, (text) => {
        if (isRefused(text)) return;
        const { stdout, stderr } = positionOf(text);
        expect(Number.isSafeInteger(stdout) && Number.isSafeInteger(stderr)).toBe(true);
        expect(text.replace(/(^|\.)0+(?=\d)/g, '$1')).toBe(`${stdout}.${stderr}`);
      }),
      { seed: 5, numRuns: 5_000 },
    );
  });

  it.each(['', '.', '1', '1.', '.1', '1.2.3', '-1.0', '1.5e3', ' 1.2', '1.2\n', '1,2', `1.${'9'.repeat(16)}`])(
    'is not %j',
    (text) => {
      expect(isRefused(text)).toBe(true);
    },
  );
});

/** Whether what is sent can be read again as what it was, by a reader as the HTML standard has it (9.2.6). */
const readAgain = (text: string) =>
  text
    .split('\n\n')
    .filter((block) => block !== '')
    .map((block) => {
      const fields = new Map(
        block.split('\n').map((line) => [line.split(': ', 1)[0], line.slice(line.indexOf(': ') + 2)]),
      );
      return { event: fields.get('event'), id: fields.get('id'), data: JSON.parse(fields.get('data') ?? '') as object };
    });

describe('the events of a turn', () => {
  const piece = (stream: 'stdout' | 'stderr') =>
    fc.tuple(fc.nat(9_999), fc.nat(9), fc.string({ unit: 'binary', maxLength: 6 })).map(([asked, lost, data]) => ({
      stream,
      asked,
      from: asked + lost,
      next: asked + lost + Buffer.byteLength(data),
      data,
      encoding: 'utf8' as const,
    }));

  it('are one for what is lost and one for what came; each id goes on right after its event', () => {
    fc.assert(
      fc.property(piece('stdout'), piece('stderr'), (out, err) => {
        const { text, position } = eventsOf({ pieces: [out, err], termination: null });
        expect(position).toStrictEqual({ stdout: out.next, stderr: err.next });
        const at = { stdout: out.asked, stderr: err.asked };
        const seen = readAgain(text);
        for (const { event, id, data } of seen) {
          const { stream, from, to, data: came } = data as Record<string, string & number>;
          const of = stream as unknown as 'stdout' | 'stderr';
          expect(from, 'nothing is left out').toBe(at[of]);
          at[of] = event === 'lost' ? Number(to) : at[of] + Buffer.byteLength(String(came));
          expect(positionOf(id)).toStrictEqual(at);
        }
        expect(at).toStrictEqual(position);
        expect(seen.filter(({ event }) => event === 'lost').length).toBe(
          [out, err].filter(({ asked, from }) => from > asked).length,
        );
      }),
      { seed: 5, numRuns: 2_000 },
    );
  });

  it('are none for nothing, and end with the end', () => {
    const nothing = { asked: 3, from: 3, next: 3, data: '', encoding: 'utf8' as const };
    const pieces: Turn['pieces'] = [
      { stream: 'stdout', ...nothing },
      { stream: 'stderr', ...nothing },
    ];
    expect(eventsOf({ pieces, termination: null })).toStrictEqual({ text: '', position: { stdout: 3, stderr: 3 } });
    const termination = {
      reason: 'exit' as const,
      exitCode: 3,
      signal: null,
      endedAt: '2026-01-01T00:00:00.000Z',
      maxRssBytes: 1,
      cpuMs: 1,
    };
    expect(readAgain(eventsOf({ pieces, termination }).text)).toStrictEqual([
      { event: 'exit', id: '3.3', data: { termination } },
    ]);
  });
});
