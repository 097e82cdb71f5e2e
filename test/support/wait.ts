/**
 * Waits until `probe` returns something, where there is no event to wait for (another process's state).
 * Bounded; the message of the failure says what was waited for and what was seen last.
 */
export const eventually = async <T>(
  what: string,
  probe: () => T | undefined | false | Promise<T | undefined | false>,
  limitMs = 15_000,
): Promise<T> => {
  const start = performance.now();
  for (;;) {
    const seen = await probe();
    if (seen !== undefined && seen !== false) return seen;
    const waitedMs = performance.now() - start;
    if (waitedMs > limitMs) throw new Error(`not within ${limitMs} ms: ${what}`);
    // The longer it takes, the more seldom: looking takes time from what is waited for.
    await new Promise((resolve) => setTimeout(resolve, Math.min(50, Math.max(5, waitedMs / 10))));
  }
};
