import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Process } from '../../../../worker/processes/process.ts';
import { type ReadRequest, readNow, readWaiting } from '../../../../worker/processes/read.ts';
import { codeOf, exitWith, processWith } from './support.ts';

const request = (more: Partial<ReadRequest> = {}): ReadRequest => ({
  stream: 'stdout',
  from: undefined,
  bytesMax: 1_048_576,
  encoding: 'utf8',
  ...more,
});
const says = (process: Process, ...pieces: readonly (string | Uint8Array | readonly number[])[]): void => {
  for (const piece of pieces) process.took('stdout', Buffer.from(piece as Uint8Array));
};
const never = new AbortController().signal;
const waiting = (waitMs: number) => ({ waitMs, signal: never, room: async () => undefined });

/** Text with characters of every length, and bytes that are none. */
const someBytes = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 4 }).map((text) => Buffer.from(text)),
      fc.constantFrom('ä', '€', '🐚', '\0', 'x').map((text) => Buffer.from(text)),
      fc.uint8Array({ maxLength: 3 }).map((bytes) => Buffer.from(bytes)),
    ),
    { maxLength: 12 },
  )
  .map((parts) => Buffer.concat(parts));

describe('what is read as text', () => {
  it('is what a decoder makes of all of it, however it was written and read', () => {
    fc.assert(
      fc.property(
        someBytes,
        fc.array(fc.integer({ min: 1, max: 5 })),
        fc.array(fc.integer({ min: 4, max: 9 }), { minLength: 1 }),
        (bytes, cuts, sizes) => {
          const process = processWith({ retainBytes: 4096 });
          let [text, next, written, reads] = ['', 0, 0, 0];
          const read = (): void => {
            const answer = readNow(process, request({ from: next, bytesMax: sizes[reads % sizes.length] ?? 4 }));
            reads += 1;
            expect(answer.from).toBe(next);
            // Offsets are bytes of the stream, whatever text is made of them.
            expect(answer.data).toBe(bytes.toString('utf8', next, answer.next));
            text += answer.data;
            next = answer.next;
          };
          for (const cut of cuts) {
            says(process, bytes.subarray(written, written + cut));
            written = Math.min(bytes.length, written + cut);
            read();
          }
          says(process, bytes.subarray(written));
          // Until all is written, at most the beginning of a character waits.
          for (let before = -1; before < next; ) {
            before = next;
            read();
          }
          expect(bytes.length - next).toBeLessThanOrEqual(3);
          process.ended(exitWith(), new Date(0));
          read();
          expect(next).toBe(bytes.length);
          expect(text).toBe(new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes));
        },
      ),
      { seed: 5, numRuns: 3_000 },
    );
  });

  it('is at least a character at a time, and no piece of one', () => {
    const process = processWith();
    says(process, 'a🐚b');
    expect(readNow(process, request({ from: 0, bytesMax: 4 }))).toMatchObject({ data: 'a', next: 1 });
    expect(readNow(process, request({ from: 1, bytesMax: 4 }))).toMatchObject({ data: '🐚', next: 5 });
  });

  it('ends with what began a character when nothing follows any more', () => {
    const process = processWith();
    says(process, 'a', [0xe2, 0x82]);
    expect(readNow(process, request())).toMatchObject({ data: 'a', next: 1, eof: false });
    says(process, '');
    expect(readNow(process, request())).toMatchObject({ data: 'a\u{fffd}', next: 3, eof: true });
  });
});

describe('what is read', () => {
  it('as base64 is each byte', () => {
    const process = processWith();
    says(process, [0xc3, 0, 0xff]);
    expect(readNow(process, request({ encoding: 'base64' }))).toMatchObject({ data: 'wwD/', next: 3 });
  });

  it('begins at the oldest byte that is kept, and says what is lost only to one who asked for it', () => {
    const process = processWith({ retainBytes: 4 });
    says(process, '0123456789');
    const kept = { data: '6789', from: 6, next: 10, retainedFrom: 6, eof: false };
    expect(readNow(process, request())).toStrictEqual({ ...kept, outputLost: false });
    expect(readNow(process, request({ from: 5 }))).toStrictEqual({ ...kept, outputLost: true });
    expect(readNow(process, request({ from: 6 }))).toStrictEqual({ ...kept, outputLost: false });
    expect(readNow(process, request({ from: 10 }))).toMatchObject({ data: '', from: 10, next: 10, outputLost: false });
    expect(codeOf(() => readNow(process, request({ from: 11 })))).toBe('bad_request');
  });

  it('is at its end only when all of it was read', () => {
    const process = processWith();
    says(process, 'abcdef', '');
    expect(readNow(process, request({ bytesMax: 5 }))).toMatchObject({ next: 5, eof: false });
    expect(readNow(process, request({ from: 5 }))).toMatchObject({ data: 'f', eof: true });
    expect(readNow(process, request({ from: 6 }))).toMatchObject({ data: '', eof: true });
    // The other stream is another one.
    expect(readNow(process, request({ stream: 'stderr' }))).toMatchObject({ data: '', eof: false });
  });
});

describe('a read that waits', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it('does not wait when there is something, or nothing can come', async () => {
    const process = processWith();
    says(process, 'x', '');
    expect(await readWaiting(process, request(), waiting(60_000))).toMatchObject({ data: 'x' });
    expect(await readWaiting(process, request({ from: 1 }), waiting(60_000))).toMatchObject({ data: '', eof: true });
    await expect(readWaiting(process, request({ from: 2 }), waiting(60_000))).rejects.toMatchObject({
      code: 'bad_request',
    });
  });

  it('goes on waiting for the rest of a character, or its end', async () => {
    const process = processWith();
    const reading = readWaiting(process, request(), waiting(60_000));
    says(process, [0xc3]);
    await new Promise(setImmediate);
    says(process, [0xa4]);
    expect(await reading).toMatchObject({ data: 'ä', next: 2 });
  });

  it('goes on from where it began: what has passed meanwhile is told as lost', async () => {
    const process = processWith({ retainBytes: 4 });
    const reading = readWaiting(process, request({ from: 0 }), waiting(60_000));
    says(process, '0123456789');
    expect(await reading).toMatchObject({ data: '6789', from: 6, outputLost: true });
  });

  it('ends with nothing after its time', async () => {
    vi.useFakeTimers();
    const process = processWith();
    const reading = readWaiting(process, request(), waiting(300));
    says(process, [0xc3]);
    await vi.advanceTimersByTimeAsync(299);
    let over = false;
    void reading.then(() => {
      over = true;
    });
    await vi.advanceTimersByTimeAsync(0);
    expect(over).toBe(false);
    await vi.advanceTimersByTimeAsync(2);
    expect(await reading).toMatchObject({ data: '', next: 0, eof: false });
  });
});
