/** What a number of rounds took. */
export interface Sample {
  /** Each round, µs. */
  readonly micros: readonly number[];
  /** All of them together, as the clock on the wall saw it. */
  readonly seconds: number;
}

/** The value below which a share of the values lies. */
export const percentile = (values: readonly number[], share: number): number => {
  const sorted = values.toSorted((a, b) => a - b);
  const found = sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
  if (found === undefined) throw new Error('nothing was measured');
  return found;
};

export const median = (values: readonly number[]): number => percentile(values, 0.5);

/** Several samples of the same thing. */
export class Series {
  readonly #samples: Sample[] = [];

  add(sample: Sample): void {
    this.#samples.push(sample);
  }

  get p50Ms(): number {
    return this.#percentileMs(0.5);
  }

  get p99Ms(): number {
    return this.#percentileMs(0.99);
  }

  /** Rounds per second; of the samples' rates the median. */
  get rate(): number {
    return median(this.#samples.map(({ micros, seconds }) => micros.length / seconds));
  }

  /**
   * How many times the other one's median this one's is: the median of the ratios of samples that were taken next
   * to each other, so that a machine that slows down in between slows both.
   */
  timesAsLongAs(other: Series): number {
    return this.#ratio(other, ({ micros }) => median(micros));
  }

  /** How many times the other one's rate this one's is. */
  timesAsFastAs(other: Series): number {
    return this.#ratio(other, ({ micros, seconds }) => micros.length / seconds);
  }

  #ratio(other: Series, of: (sample: Sample) => number): number {
    return median(
      this.#samples.flatMap((sample, index) => {
        const neighbour = other.#samples[index];
        return neighbour === undefined ? [] : [of(sample) / of(neighbour)];
      }),
    );
  }

  #percentileMs(share: number): number {
    return (
      percentile(
        this.#samples.flatMap(({ micros }) => micros),
        share,
      ) / 1000
    );
  }
}
