import type { Sample } from './statistics.ts';

/** What a measuring process is asked: so many callers at once, each so many rounds, one after another. */
export interface Task {
  readonly callers: number;
  readonly each: number;
  /** What a round is; the process's own affair. */
  readonly what: unknown;
}

/** What it answers. */
export type Answer = { readonly sample: Sample } | { readonly failure: string };

/** One round; resolves with what it took, µs, if not all of it counts. */
type MeasuredRound = (caller: number) => Promise<number | undefined> | Promise<void>;

const measure = async ({ callers, each }: Task, round: MeasuredRound): Promise<Sample> => {
  const micros: number[] = [];
  const call = async (caller: number): Promise<void> => {
    for (let done = 0; done < each; done += 1) {
      const began = performance.now();
      const took = await round(caller);
      micros.push(took ?? (performance.now() - began) * 1000);
    }
  };
  const began = performance.now();
  await Promise.all(Array.from({ length: callers }, (_, caller) => call(caller)));
  return { micros, seconds: (performance.now() - began) / 1000 };
};

/**
 * Serves measurements to the process that started this one, until it hangs up.
 * @param prepare makes a round of a task; what it does itself isn't measured
 */
export const serveRounds = (prepare: (task: Task) => Promise<MeasuredRound>): void => {
  process.on('message', (task: Task) => {
    prepare(task)
      .then(async (round) => ({ sample: await measure(task, round) }))
      .catch((error: unknown) => ({ failure: String(error) }))
      .then((answer: Answer) => process.send?.(answer));
  });
  process.on('disconnect', () => process.exit());
};
