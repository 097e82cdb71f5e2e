import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../../../', import.meta.url));

test('the parser of plans survives random changes of good plans, under sanitizers', () => {
  execFileSync(`${root}helper/native/build.sh`, ['--fuzz']);
  const said = execFileSync(`${root}dist/test/plan-fuzz`, ['200000', '1'], { encoding: 'utf8' });
  expect(said).toMatch(/^200000 plans, \d+ accepted\n$/);
});
