import { describe, expect, it } from 'vitest';
import { check, checkSizes } from '../../../protocol/check.ts';
import { Refusal } from '../../../protocol/errors.ts';
import { operations } from '../../../protocol/operations/index.ts';

const rows = ['files.list', 'files.read', 'files.write', 'files.delete'] as const;
const limits = { execMs: 1, fileMs: 2, resetMs: 3 };

const outcome = (act: () => unknown): string => {
  try {
    act();
    return 'taken';
  } catch (error) {
    if (error instanceof Refusal) return error.code;
    throw error;
  }
};

describe.each(rows)('%s', (name) => {
  const row = operations[name];
  const content = name === 'files.write' ? { content: 'x' } : {};

  it.each([
    [undefined, 'taken'],
    ['', 'taken'],
    ['a/b', 'taken'],
    ['a\nb/./c/', 'taken'],
    ['..a', 'taken'],
    ['/a', 'outside_workspace'],
    ['..', 'outside_workspace'],
    ['a/../b', 'outside_workspace'],
    ['a\0', 'outside_workspace'],
    ['x'.repeat(4_097), 'bad_request'],
    ['\ud800', 'bad_request'],
    [7, 'bad_request'],
  ])('the path %j: %s', (path, expected) => {
    expect(outcome(() => check(row.params, { user: 7, ...content, path }))).toBe(expected);
  });

  it('takes as long as a file operation may, a write also what a count of the space may take', () => {
    expect(row.timeLimitMs(limits)).toBe(name === 'files.write' ? 30_002 : 2);
  });
});

describe('the content of a write', () => {
  it.each([
    ['', 'taken'],
    ['ü\n', 'taken'],
    ['a\0b', 'bad_request'],
    ['\udc00', 'bad_request'],
    [undefined, 'bad_request'],
    [null, 'bad_request'],
  ])('%j: %s', (content, expected) => {
    expect(outcome(() => check(operations['files.write'].params, { user: 7, path: 'f', content }))).toBe(expected);
  });

  it('is at most of the size that is set, in bytes; 0 sets none', () => {
    const row = operations['files.write'];
    const sized = (content: string, writeBytes: number) => outcome(() => checkSizes(row, { content }, { writeBytes }));
    expect(sized('üü', 4)).toBe('taken');
    expect(sized('üü', 3)).toBe('bad_request');
    expect(sized('x'.repeat(1_000_000), 0)).toBe('taken');
    expect(() => checkSizes(row, { content: 'secret' }, { writeBytes: 1 })).toThrow('The field "content" is larger');
    expect(outcome(() => checkSizes(operations.exec, { content: 'x' }, { writeBytes: 0 }))).toBe('taken');
  });
});

it('a reset takes its own time', () => {
  expect(operations['workspace.reset'].timeLimitMs(limits)).toBe(3);
  expect(outcome(() => check(operations['workspace.reset'].params, { user: 7, path: '' }))).toBe('bad_request');
});
