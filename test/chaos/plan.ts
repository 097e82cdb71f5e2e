import { Random } from '../unit/protocol/support/random.ts';
import { type Strike, strikerOf, strikes } from './points.ts';
import { rows } from './rows/index.ts';
import type { ChaosRow } from './rows/row.ts';

/** All that is decided of a round before it begins. The same for the same seed and number, always. */
export interface RoundPlan extends Strike {
  readonly seed: number;
  readonly round: number;
  readonly row: ChaosRow;
  readonly canary: string;
  /** undefined: the request has no Idempotency-Key. */
  readonly key: string | undefined;
  /** Callers who send the same at once; 1 without a key. */
  readonly callers: number;
  /** Callers who send it again afterwards, under the same key. */
  readonly callersAgain: number;
  /** For the point `moment`: how long after the sending, ms. */
  readonly delayMs: number;
}

/** The order of the strikes: another one in each turn through all of them. */
const strikeOf = (seed: number, round: number): Strike => {
  const turn = new Random(seed * 7919 + Math.floor(round / strikes.length));
  const order = [...strikes];
  for (let at = order.length - 1; at > 0; at -= 1) {
    const other = turn.below(at + 1);
    [order[at], order[other]] = [order[other] as Strike, order[at] as Strike];
  }
  return order[round % strikes.length] as Strike;
};

/** Plans a round. */
export const planRound = (seed: number, round: number): RoundPlan => {
  const random = new Random((seed ^ Math.imul(round + 1, 0x9e3779b1)) >>> 0);
  const strike = strikeOf(seed, round);
  const keyed = random.below(5) > 0;
  const canary = `canary-${seed}-${round}-${random.bytes(4).toString('hex')}`;
  return {
    ...strike,
    seed,
    round,
    row: random.pick(
      rows.filter(
        ({ holds, strikers }) => strikers.includes(strikerOf(strike.point)) && (holds || strike.point !== 'begun'),
      ),
    ),
    canary,
    key: keyed ? `key.${canary}` : undefined,
    callers: keyed && random.below(3) === 0 ? 2 + random.below(3) : 1,
    callersAgain: keyed ? 1 + random.below(4) : 0,
    delayMs: random.below(60),
  };
};
