import { describe, expect, it } from 'vitest';
import { check } from '../../../protocol/check.ts';
import { type ErrorCode, Refusal } from '../../../protocol/errors.ts';
import { exec } from '../../../protocol/operations/exec.ts';

const good = { user: 7, tool: 'git' };
const repeat = (count: number, item: string): string[] => new Array<string>(count).fill(item);

/** What comes of a request: it is taken, or refused with a code. */
const outcomeOf = (request: unknown): ErrorCode | 'taken' => {
  try {
    check(exec.params, request);
    return 'taken';
  } catch (error) {
    if (error instanceof Refusal) return error.code;
    throw error;
  }
};

const cases: Record<string, readonly (readonly [name: string, change: object, outcome: ErrorCode | 'taken'])[]> = {
  user: [
    ['the first', { user: 0 }, 'taken'],
    ['the last', { user: 1_000_000 }, 'taken'],
    ['minus zero', { user: -0 }, 'taken'],
    ['below the first', { user: -1 }, 'bad_request'],
    ['over the last', { user: 1_000_001 }, 'bad_request'],
    ['2^53', { user: 2 ** 53 }, 'bad_request'],
    ['not whole', { user: 1.5 }, 'bad_request'],
    ['text', { user: '7' }, 'bad_request'],
    ['null', { user: null }, 'bad_request'],
    ['true', { user: true }, 'bad_request'],
    ['a list', { user: [7] }, 'bad_request'],
    ['infinite', { user: Number.POSITIVE_INFINITY }, 'bad_request'],
    ['NaN', { user: Number.NaN }, 'bad_request'],
    ['missing', { user: undefined }, 'bad_request'],
  ],
  tool: [
    ['empty, for the allowlist to refuse', { tool: '' }, 'taken'],
    ['unknown, for the allowlist to refuse', { tool: '/bin/sh' }, 'taken'],
    ['of 256 characters', { tool: 'x'.repeat(256) }, 'taken'],
    ['of 257 characters', { tool: 'x'.repeat(257) }, 'bad_request'],
    ['a lone surrogate', { tool: '\udc00' }, 'bad_request'],
    ['a number', { tool: 1 }, 'bad_request'],
    ['null', { tool: null }, 'bad_request'],
    ['missing', { tool: undefined }, 'bad_request'],
  ],
  args: [
    ['none', { args: [] }, 'taken'],
    ['an empty one', { args: [''] }, 'taken'],
    ['any text', { args: ['--x', '-', 'ä€😀\n\t\u0001', '$(id)', '\ufeff'] }, 'taken'],
    ['65,000', { args: repeat(65_000, 'a') }, 'taken'],
    ['65,001', { args: repeat(65_001, 'a') }, 'bad_request'],
    ['NUL in one', { args: ['a', 'b\0c'] }, 'bad_request'],
    ['a lone high surrogate', { args: ['\ud83d'] }, 'bad_request'],
    ['a lone low surrogate', { args: ['x\ude00'] }, 'bad_request'],
    ['surrogates the wrong way round', { args: ['\ude00\ud83d'] }, 'bad_request'],
    ['a number', { args: [1] }, 'bad_request'],
    ['null in it', { args: [null] }, 'bad_request'],
    ['a list in it', { args: [['a']] }, 'bad_request'],
    ['text', { args: 'status' }, 'bad_request'],
    ['an object', { args: {} }, 'bad_request'],
  ],
  dir: [
    ['empty', { dir: '' }, 'taken'],
    ['relative', { dir: 'repos/group__proj' }, 'taken'],
    ['itself', { dir: '.' }, 'taken'],
    ['with empty and dot segments', { dir: 'a//./b/' }, 'taken'],
    ['with dots in names', { dir: '..a/b../...' }, 'taken'],
    ['with a backslash', { dir: '..\\x' }, 'taken'],
    ['of 4,096 characters', { dir: 'x'.repeat(4096) }, 'taken'],
    ['of 4,097 characters', { dir: 'x'.repeat(4097) }, 'bad_request'],
    ['absolute', { dir: '/' }, 'outside_workspace'],
    ['absolute and longer', { dir: '/etc/passwd' }, 'outside_workspace'],
    ['two slashes', { dir: '//x' }, 'outside_workspace'],
    ['the parent', { dir: '..' }, 'outside_workspace'],
    ['the parent first', { dir: '../x' }, 'outside_workspace'],
    ['the parent last', { dir: 'x/..' }, 'outside_workspace'],
    ['the parent in the middle', { dir: 'a/../b' }, 'outside_workspace'],
    ['NUL', { dir: 'a\0b' }, 'outside_workspace'],
    ['only NUL', { dir: '\0' }, 'outside_workspace'],
    ['a lone surrogate', { dir: '\ud800' }, 'bad_request'],
    ['a number', { dir: 1 }, 'bad_request'],
    ['a list', { dir: ['..'] }, 'bad_request'],
  ],
  env: [
    ['none', { env: [] }, 'taken'],
    ['an empty value', { env: ['A='] }, 'taken'],
    ['a value with = and line ends', { env: ['A=b=c\nD=e'] }, 'taken'],
    ['a key with all that it may have', { env: ['_aZ09=1'] }, 'taken'],
    ['a key twice', { env: ['A=1', 'A=2'] }, 'taken'],
    ['128 entries', { env: repeat(128, 'A=1') }, 'taken'],
    ['129 entries', { env: repeat(129, 'A=1') }, 'bad_request'],
    ['no =', { env: ['A'] }, 'bad_request'],
    ['empty', { env: [''] }, 'bad_request'],
    ['no key', { env: ['=1'] }, 'bad_request'],
    ['a key that begins with a digit', { env: ['1A=1'] }, 'bad_request'],
    ['a key with a hyphen', { env: ['A-B=1'] }, 'bad_request'],
    ['a key with a space', { env: ['A =1'] }, 'bad_request'],
    ['a key behind a line end', { env: ['\nA=1'] }, 'bad_request'],
    ['a key ahead of a line end', { env: ['A\n=1'] }, 'bad_request'],
    ['a key that is not ASCII', { env: ['Ä=1'] }, 'bad_request'],
    ['NUL in the value', { env: ['A=1\0B=2'] }, 'bad_request'],
    ['NUL in the key', { env: ['A\0=1'] }, 'bad_request'],
    ['a lone surrogate', { env: ['A=\ud800'] }, 'bad_request'],
    ['a number', { env: [1] }, 'bad_request'],
    ['an object', { env: { A: '1' } }, 'bad_request'],
    ['text', { env: 'A=1' }, 'bad_request'],
  ],
  agent: [
    ['empty', { agent: '' }, 'taken'],
    ['for its tool', { tool: 'evo-workflow', agent: 'a' }, 'taken'],
    ['empty, for its tool', { tool: 'evo-workflow', agent: '' }, 'taken'],
    ['with all that it may have', { tool: 'evo-workflow', agent: '.aZ09_-' }, 'taken'],
    ['of 128 characters', { tool: 'evo-workflow', agent: 'a'.repeat(128) }, 'taken'],
    ['of 129 characters', { tool: 'evo-workflow', agent: 'a'.repeat(129) }, 'bad_agent'],
    ['for another tool', { agent: 'a' }, 'bad_agent'],
    ['for a tool of a like name', { tool: 'evo-workflow ', agent: 'a' }, 'bad_agent'],
    ['that could be an option', { tool: 'evo-workflow', agent: '-a' }, 'bad_agent'],
    ['with a slash', { tool: 'evo-workflow', agent: 'a/b' }, 'bad_agent'],
    ['with a space', { tool: 'evo-workflow', agent: 'a b' }, 'bad_agent'],
    ['with a line end', { tool: 'evo-workflow', agent: 'a\n' }, 'bad_agent'],
    ['with NUL', { tool: 'evo-workflow', agent: 'a\0' }, 'bad_agent'],
    ['that is not ASCII', { tool: 'evo-workflow', agent: 'ä' }, 'bad_agent'],
    ['a number', { tool: 'evo-workflow', agent: 1 }, 'bad_request'],
  ],
  'other fields': [
    ['none', {}, 'taken'],
    ['one', { uid: 0 }, 'bad_request'],
    ['one that is null', { uid: null }, 'bad_request'],
    ['one of another spelling', { Tool: 'git' }, 'bad_request'],
  ],
};

describe.each(Object.entries(cases))('exec: %s', (_field, rows) => {
  it.each(rows)('%s', (_name, change, outcome) => {
    expect(outcomeOf({ ...good, ...change })).toBe(outcome);
  });
});

describe('exec', () => {
  it('gives a request on as it came', () => {
    const whole = { ...good, tool: 'evo-workflow', args: ['a'], dir: 'b', env: ['C=d'], agent: 'e' };
    expect(check(exec.params, whole)).toStrictEqual(whole);
  });

  it.each([
    ['an exit', { exitCode: 0, signal: null }, true],
    ['the largest exit code', { exitCode: 255, signal: null }, true],
    ['a signal', { exitCode: -1, signal: 'SIGKILL' }, true],
    ['a code over the largest', { exitCode: 256, signal: null }, false],
    ['a code under -1', { exitCode: -2, signal: null }, false],
    ['a signal that is missing', { exitCode: -1 }, false],
    ['a text too long for a signal', { exitCode: -1, signal: 'x'.repeat(17) }, false],
    ['a negative time', { exitCode: 0, signal: null, durationMs: -1 }, false],
    ['more than there is', { exitCode: 0, signal: null, stdout: '' }, false],
  ])('takes as a result %s: %j is %s', (_name, change, taken) => {
    const result = { truncated: false, timedOut: false, durationMs: 1, ...change };
    expect(exec.result.safeParse(result).success).toBe(taken);
  });

  it('has the tools’ time limit, and before it what a count of the space may take', () => {
    expect(exec.timeLimitMs({ execMs: 1234, fileMs: 1, resetMs: 2 })).toBe(31_234);
  });
});
