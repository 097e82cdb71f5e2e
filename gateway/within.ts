/** Waits for a promise, but no longer than `limitMs`; true when it was fulfilled in time. */
export const within = async (limitMs: number, awaited: Promise<unknown>): Promise<boolean> => {
  const { promise: passed, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => resolve(false), limitMs);
  try {
    return await Promise.race([awaited.then(() => true), passed]);
  } finally {
    clearTimeout(timer);
  }
};
