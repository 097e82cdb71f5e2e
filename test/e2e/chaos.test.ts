import { expect, test } from 'vitest';
import { strikes } from '../chaos/points.ts';
import { explain, runRounds } from '../chaos/rounds.ts';

const seed = 3;
const rounds = 60;

test(`after ${rounds} crashes and cuts at all points: no false success, no second effect, no wrong "not done"`, async () => {
  expect(rounds, 'every way to strike occurs').toBeGreaterThanOrEqual(strikes.length);
  const { failures, recoveryMs } = await runRounds({
    seed,
    rounds: Array.from({ length: rounds }, (_, at) => at),
    services: 3,
  });
  expect(failures.map(explain).join('\n\n')).toBe('');
  expect(recoveryMs).toHaveLength(rounds);
}, 1_200_000);
