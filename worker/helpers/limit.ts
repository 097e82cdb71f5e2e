/** The time for something is over, or nobody waits for it any more. */
export class Expired extends Error {
  constructor() {
    super('expired');
    this.name = 'Expired';
  }
}

/**
 * Waits for a promise, at most until a moment of `performance.now()`, and no longer than somebody waits for it.
 * @throws Expired
 */
export const before = async <T>(promise: Promise<T>, until: number, signal: AbortSignal): Promise<T> => {
  const expired = Promise.withResolvers<never>();
  const expire = (): void => expired.reject(new Expired());
  const timer = setTimeout(expire, Math.max(0, until - performance.now()));
  signal.addEventListener('abort', expire, { once: true });
  if (signal.aborted) expire();
  try {
    return await Promise.race([promise, expired.promise]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', expire);
  }
};
