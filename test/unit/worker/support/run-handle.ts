import type { RunEnd } from '../../../../worker/runs/run.ts';
import type { RunHandle } from '../../../../worker/runs/runs.ts';

const never = (): never => {
  throw new Error('a run that is waited for is not spoken to');
};

/** The handle of a run that comes out as the test says, and that nobody speaks to. */
export const handleOf = (outcome: RunHandle['outcome'], gone: Promise<RunEnd>): RunHandle => ({
  outcome,
  gone,
  started: new Promise<void>(() => undefined),
  controls: {
    listens: true,
    stop: never,
    kill: never,
    signal: never,
    resize: never,
    accepts: never,
    offer: never,
    closeInput: never,
  },
});
