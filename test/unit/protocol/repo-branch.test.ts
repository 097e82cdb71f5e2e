import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { branchName } from '../../../protocol/operations/repo-fields.ts';
import { Random } from './support/random.ts';

// Programs are started: on a busy machine that takes long, and is no failure.
vi.setConfig({ testTimeout: 600_000 });

/** What git says of many names at once: a script that asks it for each of its arguments. */
const gitTakes = (candidates: readonly string[]): boolean[] => {
  const folder = mkdtempSync(join(tmpdir(), 'branch-names-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const script = `cd "$0" || exit 1
    for name do if git check-ref-format --branch "$name" >/dev/null 2>&1; then echo 1; else echo 0; fi; done`;
  const environment = { PATH: process.env['PATH'] ?? '', HOME: folder, GIT_CEILING_DIRECTORIES: tmpdir() };
  const said = execFileSync('sh', ['-c', script, folder, ...candidates], { env: environment });
  const lines = said.toString().trim().split('\n');
  expect(lines).toHaveLength(candidates.length);
  return lines.map((line) => line === '1');
};

describe('a branch', () => {
  const table: readonly (readonly [name: string, taken: boolean])[] = [
    ...[
      'main',
      'release/1.2',
      'a/b/c',
      'feature-x',
      'a.b',
      'a@b',
      '@a',
      'a{b',
      'a@',
      'ä/😀',
      'refs/heads/x',
      'a-',
      'x.lockx',
    ],
    ...['a]', 'a$(id)', "a'b", 'a"b', 'a;b', 'a|b', 'a&b', 'a=b', 'a,b', 'a+b', 'a#b', 'a!b', 'a%b', 'HEAD/x', 'head'],
  ].map((name) => [name, true] as const);
  const bad = [
    ...['', '@', 'HEAD', '-', '-a', '--mirror', '/', '/a', 'a/', 'a//b', '.', '..', '.a', 'a/.b', 'a.', 'a/b.', 'a..b'],
    ...[
      'a.lock',
      'a.lock/b',
      'a/b.lock',
      'a b',
      'a~',
      'a^',
      'a:b',
      'a?',
      'a*',
      'a[',
      'a\\b',
      'a@{b',
      '@{',
      '@{-1}',
      'a\tb',
    ],
    ...['a\n', '\na', 'a\rb', 'a\u0001', 'a\u007f', '+a:b', 'a:refs/heads/main'],
  ];

  it('is taken exactly as git takes it', () => {
    const all = [...table, ...bad.map((name) => [name, false] as const)];
    expect(all.map(([name]) => [name, branchName.safeParse(name).success])).toStrictEqual(all.map((row) => [...row]));
    const git = gitTakes(all.map(([name]) => name));
    // HEAD, which @ means too, is a branch's name to an older git; it never is one here.
    const expected = all.map(([name, taken], index) => (['HEAD', '@'].includes(name) ? git[index] : taken));
    expect(git).toStrictEqual(expected);
  });

  it('that is made up is never taken where git would not take it, nor refused where it would', () => {
    const random = new Random(44);
    const pieces = [
      'a',
      'b',
      '/',
      '.',
      '-',
      '@',
      '{',
      '..',
      '.lock',
      '~',
      '^',
      ':',
      ' ',
      '*',
      '[',
      '\\',
      'ä',
      '\u007f',
      '?',
    ];
    const made = Array.from({ length: 400 }, () =>
      Array.from({ length: 1 + random.below(5) }, () =>
        random.pick(random.below(2) === 0 ? ['a', 'b', 'c'] : pieces),
      ).join(''),
    );
    const ours = made.map((name) => branchName.safeParse(name).success);
    const git = gitTakes(made);
    expect(made.filter((name, index) => ours[index] !== git[index] && name !== '@')).toStrictEqual([]);
    expect(ours.filter(Boolean).length).toBeGreaterThan(80);
    expect(ours.filter((taken) => !taken).length).toBeGreaterThan(80);
  });

  it('has no NUL, no lone surrogate, and fits into a file name with its lock', () => {
    for (const name of ['a\0', 'a\ud800', 'a'.repeat(245), 'ä'.repeat(123)])
      expect(branchName.safeParse(name).success).toBe(false);
    for (const name of ['a'.repeat(244), 'ä'.repeat(122)]) expect(branchName.safeParse(name).success).toBe(true);
  });
});
