/**
 * Waits until `probe` returns something, where there is no event to wait for (another process's state).
 * Bounded; the message of the failure says what was waited for and what was seen last.
 */
export const eventually = async <T>(
  what: string,
  probe: () => T | undefined | false | Promise<T | undefined | false>,
  limitMs = 5_000,
): Promise<T> => {
  const end = performance.now() + limitMs;
  for (;;) {
    const seen = await probe();
    if (seen !== undefined && seen !== false) return seen;
    if (performance.now() > end) throw new Error(`not within ${limitMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
};
