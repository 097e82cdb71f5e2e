import { expect, it } from 'vitest';
import { canonicalWorkspaceId } from '../../../protocol/operations/process-fields.ts';

it.each([
  ['7', '7'],
  ['7:repos', '7:repos'],
  ['7:repos/', '7:repos'],
  ['7:./repos//a/.', '7:repos/a'],
  ['7:.', '7'],
  ['7:a:b/', '7:a:b'],
  ['7:..a/…', '7:..a/…'],
])('%s is %s', (given, canonical) => {
  expect(canonicalWorkspaceId(given)).toBe(canonical);
});
