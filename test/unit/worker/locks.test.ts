import { describe, expect, it } from 'vitest';
import { Refusal } from '../../../protocol/errors.ts';
import { UserLocks } from '../../../worker/locks.ts';

const holder = (operationId: string) => ({ action: 'exec', operationId }) as const;

const refusalOf = (step: () => void): Refusal => {
  try {
    step();
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
  throw new Error('not refused');
};

describe('the locks of users', () => {
  it('refuse a second holder at once, telling who holds it and nothing else', () => {
    const locks = new UserLocks();
    locks.acquire(7, holder('first'));
    const refusal = refusalOf(() => locks.acquire(7, holder('second')));
    expect(refusal.code).toBe('busy');
    expect(refusal.details).toStrictEqual({ action: 'exec', operationId: 'first' });
  });

  it('are one for each user', () => {
    const locks = new UserLocks();
    locks.acquire(7, holder('a'));
    locks.acquire(8, holder('b'));
    expect(refusalOf(() => locks.acquire(8, holder('c'))).details).toMatchObject({ operationId: 'b' });
  });

  it('can be had again after they were given back', () => {
    const locks = new UserLocks();
    locks.acquire(7, holder('a'))();
    locks.acquire(7, holder('b'));
    expect(refusalOf(() => locks.acquire(7, holder('c'))).details).toMatchObject({ operationId: 'b' });
  });

  it('are not lost to a former holder that gives back twice', () => {
    const locks = new UserLocks();
    const release = locks.acquire(7, holder('a'));
    release();
    locks.acquire(7, holder('b'));
    release();
    expect(refusalOf(() => locks.acquire(7, holder('c'))).details).toMatchObject({ operationId: 'b' });
  });

  it('a refused one changes nothing', () => {
    const locks = new UserLocks();
    const release = locks.acquire(7, holder('a'));
    refusalOf(() => locks.acquire(7, holder('b')));
    refusalOf(() => locks.acquire(7, holder('c')));
    release();
    expect(() => locks.acquire(7, holder('d'))).not.toThrow();
  });
});
