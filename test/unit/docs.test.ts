import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { errors } from '../../protocol/errors.ts';
import { operations } from '../../protocol/operations/index.ts';
import { settingsTable } from '../../protocol/settings.ts';

const page = (name: string): string => readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8');

/** The rows of a page's tables, cells trimmed, without heads and rules. */
const rows = (text: string): string[][] =>
  text
    .split('\n')
    .filter((line) => /^\| `/.test(line))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );

const code = (words: readonly string[]): string => words.map((word) => `\`${word}\``).join(', ');

test('docs/errors.md lists every code with its row, and no other', () => {
  const expected = Object.entries(errors).map(([name, row]) => [
    `\`${name}\``,
    String(row.status),
    row.retry,
    row.blame,
    row.text,
  ]);
  expect(rows(page('errors.md'))).toEqual(expected);
});

test('docs/operation-table.md lists every operation with its row, and no other', () => {
  const expected = Object.entries(operations).map(([name, row]) => [
    `\`${name}\``,
    `\`${'events' in row ? 'GET' : 'POST'} ${row.route}\``,
    row.effect,
    row.asRoot,
    row.asUser,
    code(row.secrets),
    code(row.errors),
  ]);
  expect(rows(page('operation-table.md'))).toEqual(expected);
});

test('docs/configuration.md lists every setting, and no other but the tokens', () => {
  const named = rows(page('configuration.md')).flatMap(([name = '']) => name.replaceAll('`', '').split(', '));
  const tokens = ['RUNNER_TOKEN', 'RUNNER_TOKEN_PREVIOUS', 'RUNNER_TOKEN_FILE', 'RUNNER_TOKEN_PREVIOUS_FILE'];
  expect(named.sort()).toEqual([...Object.keys(settingsTable), ...tokens].sort());
});

test('docs/routes.md names every route, and every field of its request and answer', () => {
  const text = page('routes.md');
  for (const [name, row] of Object.entries(operations)) {
    expect(text, name).toContain(row.route);
    // What a caller of events sees are not its params and its result.
    const isOfEvents = 'events' in row;
    const fields = isOfEvents
      ? ['Last-Event-ID', 'output', 'lost', 'exit']
      : [...Object.keys(row.params.shape), ...Object.keys(row.result.shape), ...row.streams];
    for (const field of fields) expect(text, `${name}.${field}`).toContain(`\`${field}\``);
  }
});
