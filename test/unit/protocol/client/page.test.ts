import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { errorCodes, errorRow } from '../../../../protocol/errors.ts';

test('docs/client.md names every code that does not mean that nothing was done, at the kind that it leads to', () => {
  const page = readFileSync(new URL('../../../../docs/client.md', import.meta.url), 'utf8');
  const line = (kind: string) => page.split('\n').find((text) => text.startsWith(`| \`${kind}\``));
  const exceptions = errorCodes.filter((code) => errorRow(code).effect !== 'none');
  expect(exceptions).toContain('kill_incomplete');
  for (const code of exceptions) {
    const { effect } = errorRow(code);
    expect(line(effect === 'unknown' ? 'uncertain' : effect), code).toContain(`\`${code}\``);
  }
});
