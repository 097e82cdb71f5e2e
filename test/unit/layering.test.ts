import { readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** What each folder may import of this repository beside itself: a folder, or one file. `test` may import all. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  protocol: [],
  helper: [],
  worker: ['protocol', 'helper/contract.ts', 'helper/contract'],
  gateway: ['protocol'],
  deploy: ['protocol', 'helper/contract.ts'],
};
const folders = Object.keys(allowed);
/** `protocol` does no I/O, so that both sides can drive it in tests without any. */
const protocolPackages = ['zod', 'msgpackr/pack', 'node:buffer', 'node:crypto'];

const filesBelow = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .filter((path) => !/(^|\/)(node_modules|dist)\//.test(path));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const isScript = (path: string): boolean => /\.[cm]?[jt]sx?$/.test(path);
const scripts = folders.flatMap(filesBelow).filter(isScript);
const tests = filesBelow('test').filter(isScript);

/** Takes comments out and keeps strings, so that what a comment says is not taken for code. */
const withoutComments = (source: string): string =>
  source.replace(
    /\/\*[\s\S]*?\*\/|(?<![:\\'"`/])\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\[\s\S]|[^`\\])*`/g,
    (part) => (part.startsWith('/*') || part.startsWith('//') ? ' ' : part),
  );

/** Everything that a module loads, by whatever kind of statement; `?` where it can't be told from the text. */
const importsOf = (source: string): string[] => {
  const code = withoutComments(source);
  const from = [...code.matchAll(/\bfrom\s*(['"])(.+?)\1/g)].map((match) => match[2] ?? '?');
  const bare = [...code.matchAll(/\bimport\s*(['"])(.+?)\1/g)].map((match) => match[2] ?? '?');
  const called = [
    ...code.matchAll(/\b(?:import|require|import\.meta\.resolve)\s*\(\s*(?:(['"`])([^'"`$]+)\1\s*[,)])?/g),
  ];
  return [...from, ...bare, ...called.map((match) => match[2] ?? '?')];
};

/** What is wrong with one import of one file, if anything. */
const wrongImport = (path: string, wanted: string): string | undefined => {
  const folder = path.split('/')[0] ?? '';
  if (wanted === '?') return 'an import of something that is made up at run time';
  if (!wanted.startsWith('.')) {
    if (wanted.startsWith('/') || wanted.startsWith('file:')) return `an absolute import of ${wanted}`;
    if (folder === 'protocol' && !protocolPackages.includes(wanted)) return `an import of ${wanted} in protocol`;
    if (isBuiltin(wanted) && !wanted.startsWith('node:')) return `an import of ${wanted} without node:`;
    return undefined;
  }
  const target = relative(root, resolve(root, dirname(path), wanted));
  if (target.startsWith(`${folder}/`)) return undefined;
  const fine = allowed[folder]?.some((other) => target === other || target.startsWith(`${other}/`));
  return fine ? undefined : `an import of ${target}`;
};

describe('what the scanner sees', () => {
  it('is every way of loading a module, and no comment', () => {
    const source = [
      "import { a } from './1.ts';",
      "import type b from './2.ts';",
      "import './3.ts';",
      "export * from './4.ts';",
      "export { c,\n  d } from './5.ts';",
      "const e = await import('./6.ts');",
      "type F = import('./7.ts').G;",
      "const h = require('./8.ts');",
      "import.meta.resolve('./9.ts');",
      'import i from "./10.ts";',
      "import j, * as k from './11.ts';",
      'await import(name);',
      "// import './no.ts'",
      "/* from './no.ts' */",
      "const url = 'https://example.org/'; // from './no.ts'",
    ].join('\n');
    const seen = importsOf(source).sort();
    const expected = ['?', ...Array.from({ length: 11 }, (_, at) => `./${at + 1}.ts`)];
    expect(seen).toStrictEqual(expected.sort());
  });

  it.each([
    ['protocol/a.ts', '../worker/b.ts', false],
    ['protocol/a.ts', './operations/b.ts', true],
    ['protocol/operations/a.ts', '../b.ts', true],
    ['protocol/operations/a.ts', '../../helper/contract.ts', false],
    ['protocol/a.ts', 'node:fs', false],
    ['protocol/a.ts', 'zod', true],
    ['helper/fs/a.ts', '../contract.ts', true],
    ['helper/fs/a.ts', '../contract/fs.ts', true],
    ['helper/a.ts', '../protocol/limits.ts', false],
    ['worker/a.ts', '../protocol/limits.ts', true],
    ['worker/git/a.ts', '../../helper/contract.ts', true],
    ['worker/helpers/a.ts', '../../helper/contract/fs.ts', true],
    ['gateway/a.ts', '../helper/contract/fs.ts', false],
    ['worker/a.ts', '../helper/fs/main.ts', false],
    ['worker/a.ts', '../gateway/server.ts', false],
    ['worker/a.ts', 'fs', false],
    ['worker/a.ts', 'node:fs', true],
    ['gateway/a.ts', '../protocol/limits.ts', true],
    ['gateway/a.ts', '../helper/contract.ts', false],
    ['gateway/a.ts', '../worker/b.ts', false],
    ['gateway/a.ts', '../test/b.ts', false],
    ['gateway/a.ts', '../../elsewhere/b.ts', false],
    ['gateway/a.ts', '/etc/b.ts', false],
    ['deploy/a.ts', '../helper/contract.ts', true],
    ['deploy/a.ts', '../worker/main.ts', false],
  ])('%s importing %s: %s', (path, wanted, fine) => {
    expect(wrongImport(path, wanted) === undefined).toBe(fine);
  });
});

describe('the sources', () => {
  it('are found', () => {
    expect(scripts).toContain('protocol/operations/exec.ts');
    expect(tests).toContain('test/unit/layering.test.ts');
  });

  it('import only what their folder may', () => {
    const wrong = scripts.flatMap((path) =>
      importsOf(read(path)).flatMap((wanted) => {
        const problem = wrongImport(path, wanted);
        return problem === undefined ? [] : [`${path}: ${problem}`];
      }),
    );
    expect(wrong).toStrictEqual([]);
  });

  it('are files of at most 250 lines', () => {
    const counted = folders.flatMap(filesBelow).filter((path) => isScript(path) || /\.[ch]$/.test(path));
    const long = counted.map((path) => `${path}: ${read(path).trimEnd().split('\n').length}`);
    expect(long.filter((line) => Number(line.split(': ')[1]) > 250)).toStrictEqual([]);
  });

  it('are TypeScript, without ways around its types', () => {
    const ways = /(?::|\bas|<|,|\||&|=)\s*any\b(?!\s*[(:'"`])|\bany\[\]|@ts-(?:ignore|nocheck|expect-error)/;
    for (const planted of ['x: any', 'y as any', 'Map<string, any>', 'any[]', '// @ts-nocheck'])
      expect(planted).toMatch(ways);
    for (const innocent of ['// any of them', "'as any'".slice(1, 3), 'many: 1', 'Promise.any(x)'])
      expect(innocent).not.toMatch(ways);
    expect(scripts.filter((path) => !path.endsWith('.ts'))).toStrictEqual([]);
    const inCode = (path: string): boolean => ways.test(withoutComments(read(path)).replace(/'[^'\n]*'/g, "''"));
    const inComments = (path: string): boolean => /@ts-(?:ignore|nocheck|expect-error)/.test(read(path));
    expect(scripts.filter((path) => inCode(path) || inComments(path))).toStrictEqual([]);
  });

  it('and the tests leave no test out', () => {
    const leftOut = /\b(?:it|test|describe)(?:\.\w+)*\.(?:only|skip|todo|skipIf|runIf|fails)\b|\b[xf](?:it|describe)\(/;
    expect('describe.each(x).skip').not.toMatch(leftOut);
    for (const word of ['only', 'skip', 'todo']) expect(`it.${word}(`).toMatch(leftOut);
    expect([...scripts, ...tests].filter((path) => leftOut.test(read(path)))).toStrictEqual([]);
  });
});
