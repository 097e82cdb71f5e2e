import { describe, expect, it } from 'vitest';
import { Words } from '../../../../worker/git/words.ts';
import { Outputs } from '../../../../worker/outputs.ts';
import { runExit } from './support.ts';

const bytes = (text: string): Buffer<ArrayBuffer> => Buffer.from(text);
const ignore = (): void => undefined;

/** Words with so much room, and what was told by them. */
const setup = (bytesMax: number) => {
  const outputs = new Outputs({ credit: () => 1_000_000, send: ignore }, ['stdout', 'stderr']);
  const told = (stream: 'stdout' | 'stderr'): string => outputs.kept()?.get(stream)?.toString() ?? '';
  return { words: new Words(outputs, bytesMax), outputs, told };
};

describe('what git says', () => {
  it('is told, of each stream the first bytes of all commands together', () => {
    const { words, told, outputs } = setup(10);
    words.begin('told')('stdout', bytes('1234'), ignore);
    words.end(runExit(), 'told');
    const second = words.begin('told');
    second('stderr', bytes('abcdefghij'), ignore);
    second('stdout', bytes('567890'), ignore);
    words.end(runExit(), 'told');
    expect([told('stdout'), told('stderr'), words.cut]).toStrictEqual(['1234567890', 'abcdefghij', false]);

    const third = words.begin('told');
    expect(third('stdout', bytes('X'), ignore)).toBe(true);
    expect(third('stderr', bytes('Y'), ignore)).toBe(true);
    expect([told('stdout'), told('stderr'), words.cut]).toStrictEqual(['1234567890', 'abcdefghij', true]);
    expect(outputs.ends()).toStrictEqual({ stdout: { bytes: 10, cut: true }, stderr: { bytes: 10, cut: true } });
  });

  it('is cut within a piece, and only that stream is', () => {
    const { words, told, outputs } = setup(3);
    words.begin('told')('stdout', bytes('12345'), ignore);
    words.begin('told')('stdout', bytes('6'), ignore);
    words.begin('told')('stderr', bytes('abc'), ignore);
    expect([told('stdout'), told('stderr')]).toStrictEqual(['123', 'abc']);
    expect(outputs.ends()).toStrictEqual({ stdout: { bytes: 3, cut: true }, stderr: { bytes: 3, cut: false } });
  });

  it('is cut when its supervisor has dropped some', () => {
    for (const stream of ['stdout', 'stderr'] as const) {
      const { words, outputs } = setup(100);
      words.begin('told');
      words.end(runExit({ [`${stream}Cut`]: true }), 'told');
      expect(words.cut).toBe(true);
      expect(Object.entries(outputs.ends()).filter(([, { cut }]) => cut)).toHaveLength(1);
      expect(outputs.ends()[stream]?.cut).toBe(true);
    }
  });

  it('is not told when it was asked for, but for its complaints', () => {
    const { words, told } = setup(100);
    const sink = words.begin('asked');
    const piece = bytes('refs/');
    expect(sink('stdout', piece, ignore)).toBe(true);
    // The next piece lies in the same place.
    piece.write('heads');
    sink('stdout', piece, ignore);
    sink('stderr', bytes('fatal: x'), ignore);
    words.end(runExit(), 'asked');
    expect(words.asked()).toBe('refs/heads');
    expect([told('stdout'), told('stderr'), words.cut]).toStrictEqual(['', 'fatal: x', false]);
  });

  it('is asked for anew each time, and what is cut of that is no word less for the caller', () => {
    const { words, outputs } = setup(0);
    words.begin('asked')('stdout', bytes('first'), ignore);
    words.end(runExit({ stdoutCut: true }), 'asked');
    expect(words.cut).toBe(false);
    expect(outputs.ends()['stdout']?.cut).toBe(false);
    words.begin('asked')('stdout', bytes('second'), ignore);
    expect(words.asked()).toBe('second');
    words.end(runExit({ stderrCut: true }), 'asked');
    expect(words.cut).toBe(true);
  });

  it('is passed on up to the caller’s limit, and up to the worker’s own when it is asked for', () => {
    expect(setup(5).words.limit('told')).toBe(5);
    expect(setup(5).words.limit('asked')).toBe(262_144);
    expect(setup(600_000).words.limit('asked')).toBe(262_144);
  });

  it('makes its producer pause while nobody takes it', () => {
    let credit = 0;
    const outputs = new Outputs({ credit: () => credit, send: () => undefined }, ['stdout', 'stderr']);
    let resumed = 0;
    const taken = new Words(outputs, 100).begin('told')('stdout', bytes('x'), () => {
      resumed += 1;
    });
    expect([taken, resumed]).toStrictEqual([false, 0]);
    credit = 1;
    outputs.flush();
    expect(resumed).toBe(1);
  });
});
