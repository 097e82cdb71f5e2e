import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { launchSteps } from '../../../helper/contract.ts';
import { type SpawnerMessage, SpawnerMessages, SpawnerViolation } from '../../../worker/runs/messages.ts';
import { Random } from '../protocol/support/random.ts';
import { exitBody, said, saidEnded, saidExit, saidFailed, saidIncomplete, saidOutput } from './support/wire.ts';

const parse = (bytes: Buffer<ArrayBuffer>): SpawnerMessage[] => [...new SpawnerMessages().push(bytes)];

/** Output of one stream in one piece, as if it had not been cut. */
const joined = (messages: readonly SpawnerMessage[]): SpawnerMessage[] => {
  const whole: SpawnerMessage[] = [];
  for (const message of messages) {
    const last = whole.at(-1);
    if (message.kind === 'output' && last?.kind === 'output' && message.stream === last.stream)
      whole[whole.length - 1] = { ...last, data: Buffer.concat([last.data, message.data]) };
    else whole.push(message);
  }
  return whole;
};

/** Comparable whatever buffer the bytes lie in. */
const plain = (message: SpawnerMessage): unknown =>
  message.kind === 'output' ? { ...message, data: message.data.toString('hex') } : message;

const anyMessage: fc.Arbitrary<Buffer<ArrayBuffer>> = fc.oneof(
  fc
    .tuple(fc.constantFrom(16, 17), fc.uint8Array({ minLength: 1, maxLength: 200 }))
    .map(([kind, data]) => said(kind, data)),
  fc
    .tuple(fc.integer({ min: 1, max: 17 }), fc.integer({ min: 1, max: 200 }))
    .map(([step, errno]) => saidFailed(step, errno)),
  fc
    .record({
      reason: fc.integer({ min: 1, max: 4 }),
      flags: fc.integer({ min: 0, max: 15 }),
      code: fc.integer({ min: 0, max: 255 }),
      signal: fc.integer({ min: 0, max: 64 }),
    })
    .chain((exit) => fc.constantFrom(saidExit(exit), saidIncomplete(exit))),
  fc.constant(saidEnded()),
);

describe('messages of the spawner', () => {
  it('are read as wire.h lays them out', () => {
    expect(parse(saidOutput('stdout', 'out')).map(plain)).toStrictEqual([
      { kind: 'output', stream: 'stdout', data: Buffer.from('out').toString('hex') },
    ]);
    expect(parse(saidOutput('stderr', 'e')).map(plain)).toStrictEqual([
      { kind: 'output', stream: 'stderr', data: Buffer.from('e').toString('hex') },
    ]);
    expect(parse(saidFailed(17, 2))).toStrictEqual([{ kind: 'failed', step: 'exec', errno: 'ENOENT' }]);
    expect(parse(saidFailed(1, 71))).toStrictEqual([{ kind: 'failed', step: 'plan', errno: 'EPROTO' }]);
    expect(parse(saidExit({ flags: 1 | 8, code: 255 }))).toStrictEqual([
      {
        kind: 'exit',
        exit: {
          reason: 'exited',
          exitCode: 255,
          signal: undefined,
          stdoutCut: false,
          stderrCut: true,
          maxRssBytes: 1024,
          cpuMicros: 700,
          durationMicros: 2500,
        },
      },
    ]);
    expect(parse(saidIncomplete({ reason: 2, flags: 2 | 4, signal: 9 }))).toStrictEqual([
      {
        kind: 'incomplete',
        exit: {
          reason: 'timeout',
          exitCode: undefined,
          signal: 'SIGKILL',
          stdoutCut: true,
          stderrCut: false,
          maxRssBytes: 1024,
          cpuMicros: 700,
          durationMicros: 2500,
        },
      },
    ]);
    expect(parse(saidEnded())).toStrictEqual([{ kind: 'ended' }]);
  });

  it('name every step by its number', () => {
    const named = launchSteps.map((_step, index) => parse(saidFailed(index + 1, 1))[0]);
    expect(named).toStrictEqual(launchSteps.map((step) => ({ kind: 'failed', step, errno: 'EPERM' })));
  });

  it('name every reason by its number', () => {
    const named = [1, 2, 3, 4].map((reason) => parse(saidExit({ reason }))[0]);
    expect(named.map((message) => (message?.kind === 'exit' ? message.exit.reason : undefined))).toStrictEqual([
      'exited',
      'timeout',
      'stopped',
      'spawnerLost',
    ]);
  });

  it('name signals and errors that have no name by their number', () => {
    expect(parse(saidExit({ flags: 2, signal: 40 }))[0]).toMatchObject({ exit: { signal: 'SIG40' } });
    expect(parse(saidFailed(17, 4095))[0]).toMatchObject({ errno: 'E4095' });
  });

  it('are the same wherever the stream is cut', () => {
    fc.assert(
      fc.property(fc.array(anyMessage, { maxLength: 6 }), fc.integer(), (messages, seed) => {
        const random = new Random(seed);
        const whole = Buffer.concat(messages);
        const expected = parse(whole);
        expect(expected).toHaveLength(messages.length);
        const reader = new SpawnerMessages();
        const read: SpawnerMessage[] = [];
        const longest = random.pick([1, 3, 20, 500]);
        for (let at = 0; at < whole.length; ) {
          const size = 1 + random.below(longest);
          read.push(...reader.push(whole.subarray(at, at + size)));
          at += size;
        }
        expect(joined(read).map(plain)).toStrictEqual(joined(expected).map(plain));
      }),
      { seed: 21, numRuns: 500 },
    );
  });

  it('are given as soon as they are whole', () => {
    const reader = new SpawnerMessages();
    const bytes = saidExit();
    expect([...reader.push(bytes.subarray(0, -1))]).toStrictEqual([]);
    expect([...reader.push(bytes.subarray(-1))]).toHaveLength(1);
  });

  it('give output as it comes, in place, and nothing twice', () => {
    const reader = new SpawnerMessages();
    const bytes = saidOutput('stderr', 'abcd');
    const chunks = [bytes.subarray(0, 9), bytes.subarray(9, 11), Buffer.concat([bytes.subarray(11), saidEnded()])];
    const read = chunks.map((chunk) => [...reader.push(chunk)]);
    expect(read.map((messages) => messages.map(plain))).toStrictEqual([
      [{ kind: 'output', stream: 'stderr', data: '61' }],
      [{ kind: 'output', stream: 'stderr', data: '6263' }],
      [{ kind: 'output', stream: 'stderr', data: '64' }, { kind: 'ended' }],
    ]);
    for (const chunk of chunks) chunk.fill('z');
    expect(read.map(([first]) => first?.kind === 'output' && first.data.toString())).toStrictEqual(['z', 'zz', 'z']);
  });

  it('take an exit code or a signal from the flags alone, whatever the numbers say', () => {
    for (let flags = 0; flags < 16; flags += 1) {
      const [message] = parse(saidExit({ flags, code: 0, signal: 15 }));
      if (message?.kind !== 'exit') throw new Error('not an exit');
      expect(message.exit.exitCode, `${flags}`).toBe(flags & 1 ? 0 : undefined);
      expect(message.exit.signal, `${flags}`).toBe(flags & 2 ? 'SIGTERM' : undefined);
      expect(message.exit.stdoutCut, `${flags}`).toBe((flags & 4) !== 0);
      expect(message.exit.stderrCut, `${flags}`).toBe((flags & 8) !== 0);
    }
  });
});

describe('what wire.h does not allow', () => {
  const refused: readonly (readonly [string, Buffer<ArrayBuffer>])[] = [
    ['kind 0', said(0)],
    ['a kind of the other direction', said(1, Buffer.alloc(64))],
    ['stop', said(2)],
    ['an unknown kind', said(22)],
    ['the largest kind', said(0xffff_ffff)],
    ['a start with a body', said(23, Buffer.alloc(1))],
    ['output over the limit', said(16, Buffer.alloc(65_537))],
    ['step 0', saidFailed(0, 2)],
    ['a step beyond the last', saidFailed(18, 2)],
    ['a failure that is too short', said(18, Buffer.alloc(7))],
    ['a failure that is too long', said(18, Buffer.alloc(9))],
    ['an exit that is too short', said(20, exitBody().subarray(0, 39))],
    ['an exit that is too long', said(20, Buffer.concat([exitBody(), Buffer.alloc(1)]))],
    ['an incomplete that is too short', said(19, exitBody().subarray(0, 39))],
    ['reason 0', saidExit({ reason: 0 })],
    ['a reason beyond the last', saidExit({ reason: 5 })],
    ['an end with a body', said(21, Buffer.alloc(1))],
  ];

  it.each(refused)('%s is a violation', (_name, bytes) => {
    expect(() => parse(bytes)).toThrow(SpawnerViolation);
  });

  it('takes output of exactly the limit', () => {
    expect(parse(said(16, Buffer.alloc(65_536)))).toHaveLength(1);
  });

  it('refuses a length over the limit before its body came', () => {
    const header = said(16, Buffer.alloc(65_537)).subarray(0, 8);
    expect(() => parse(header)).toThrow(SpawnerViolation);
  });

  it('refuses what is no output and too long before its body came', () => {
    for (const kind of [18, 19, 20, 21, 22, 23])
      expect(() => parse(said(kind, Buffer.alloc(41)).subarray(0, 8)), `${kind}`).toThrow(SpawnerViolation);
  });

  it('gives the messages before it', () => {
    const seen: string[] = [];
    const read = (): void => {
      for (const message of new SpawnerMessages().push(Buffer.concat([saidOutput('stdout', 'x'), said(99)])))
        seen.push(message.kind);
    };
    expect(read).toThrow(SpawnerViolation);
    expect(seen).toStrictEqual(['output']);
  });

  it('is never anything but a violation, whatever the bytes are', () => {
    const kinds = [0, 1, 2, 3, 15, 16, 17, 18, 19, 20, 21, 22, 0xffff_ffff];
    const sizes = [0, 1, 4, 7, 8, 9, 39, 40, 41, 64];
    let violations = 0;
    let messages = 0;
    for (let seed = 0; seed < 3000; seed += 1) {
      const random = new Random(seed);
      const parts = Array.from({ length: 3 }, () =>
        random.below(4) === 0
          ? random.bytes(random.below(30))
          : said(
              random.pick(kinds),
              Buffer.concat([
                // Mostly a small first number, so that steps and reasons are now and then right.
                Buffer.of(0, 0, 0, random.below(20)),
                random.bytes(64),
              ]).subarray(0, random.pick(sizes)),
            ),
      );
      const reader = new SpawnerMessages();
      try {
        for (const part of parts) messages += [...reader.push(Buffer.from(part))].length;
      } catch (error) {
        if (!(error instanceof SpawnerViolation)) throw error;
        violations += 1;
      }
    }
    expect(violations).toBeGreaterThan(1000);
    expect(messages).toBeGreaterThan(300);
  });
});
