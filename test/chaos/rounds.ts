import type { Evidence } from './evidence.ts';
import { judge } from './judge.ts';
import { planRound } from './plan.ts';
import { type FinishedRound, runRound } from './round.ts';
import { ChaosService } from './service.ts';
import { Upstream } from './upstream.ts';

/** What to do. */
export interface ChaosOptions {
  readonly seed: number;
  /** Numbers of the rounds. */
  readonly rounds: readonly number[];
  /** Services at the same time: while one recovers, the others go on. */
  readonly services: number;
  /** Stops after the rounds that are under way. */
  readonly signal?: AbortSignal;
  /** Told after each round. */
  readonly progress?: (done: number, evidence: Evidence) => void;
}

/** A round in which something did not hold. */
export interface Failure {
  readonly problems: readonly string[];
  readonly evidence: Evidence;
  /** The service's log and audit of the time, the latest lines. */
  readonly log: readonly string[];
}

/** What came of all rounds. */
export interface ChaosReport {
  readonly failures: readonly Failure[];
  readonly recoveryMs: readonly number[];
  /** How often each kind of first answer came. */
  readonly heard: ReadonlyMap<string, number>;
}

const kindOf = (heard: Evidence['heard'][number]): string =>
  heard.came === 'nothing' ? 'connection broken' : `${heard.status} ${heard.body['error'] ?? ''}`.trim();

/** Runs rounds on services that live through many of them. Stops early after a few failures. */
export const runRounds = async ({ seed, rounds, services, signal, progress }: ChaosOptions): Promise<ChaosReport> => {
  const failuresMax = 5;
  const failures: Failure[] = [];
  const recoveryMs: number[] = [];
  const heard = new Map<string, number>();
  let next = 0;
  let done = 0;

  const one = async (service: ChaosService, round: number): Promise<FinishedRound> => {
    const finished = await runRound(service, planRound(seed, round));
    const { evidence } = finished;
    recoveryMs.push(evidence.recoveryMs);
    for (const answer of evidence.heard) heard.set(kindOf(answer), (heard.get(kindOf(answer)) ?? 0) + 1);
    const problems = judge(evidence);
    const { log, auditText } = service.now;
    if (problems.length > 0) failures.push({ problems, evidence, log: [...log.slice(-30), ...auditText.slice(-15)] });
    return finished;
  };

  /** Long after its round nothing may have come of it any more. */
  const lookAgain = ({ evidence, place }: FinishedRound): void => {
    const now = evidence.plan.row.effect(place);
    const { begun, completed } = evidence.effectAgain;
    if (now.begun === begun && now.completed === completed) return;
    failures.push({ problems: [`an effect long after: ${JSON.stringify(now)}`], evidence, log: [] });
  };

  const live = async (index: number): Promise<void> => {
    const service = await ChaosService.start(index);
    const finished: FinishedRound[] = [];
    try {
      while (next < rounds.length && failures.length < failuresMax && signal?.aborted !== true) {
        const round = rounds[next++] as number;
        try {
          const last = await one(service, round);
          finished.push(last);
          done += 1;
          progress?.(done, last.evidence);
        } catch (error) {
          next = rounds.length;
          throw new Error(`${describe(seed, round)} could not be carried out`, { cause: error });
        }
      }
      finished.forEach(lookAgain);
    } finally {
      await service.stop();
    }
  };
  const upstream = await Upstream.start();
  const lives = Array.from({ length: Math.min(services, rounds.length) }, (_, index) => live(index));
  // Not before all of them are stopped.
  const ends = await Promise.allSettled(lives);
  await upstream.stop();
  for (const { status, ...ended } of ends) if (status === 'rejected') throw (ended as PromiseRejectedResult).reason;
  return { failures, recoveryMs, heard };
};

const describe = (seed: number, round: number): string => {
  const { point, fault, row } = planRound(seed, round);
  return `seed ${seed}, round ${round} (${row.what}; ${point}: ${fault})`;
};

/** A failure, with all that is known of it, and how to see it again. */
export const explain = ({ problems, evidence, log }: Failure): string => {
  const { plan, ...rest } = evidence;
  return [
    `${describe(plan.seed, plan.round)}:`,
    ...problems.map((problem) => `  - ${problem}`),
    ...Object.entries({ plan, ...rest }).map(([name, value]) => `${name}: ${JSON.stringify(value)}`),
    ...log,
    `again: npm run chaos -- --seed ${plan.seed} --round ${plan.round}`,
  ].join('\n');
};
