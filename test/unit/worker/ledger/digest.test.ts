import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Digests, readOrMakeKey } from '../../../../worker/ledger/digest.ts';
import { stateFolder } from '../support/ledger.ts';

const digests = new Digests(Buffer.alloc(32, 1));
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const ofExec = (params: object): string => hex(digests.ofRequest('exec', { user: 7, tool: 'git', ...params }));

describe('the digest of a request', () => {
  it('is another one with another key, operation, or value of any field', () => {
    const other = new Digests(Buffer.alloc(32, 2));
    const params = { user: 7, tool: 'git', args: ['a', 'b'] };
    const all = [
      digests.ofRequest('exec', params),
      other.ofRequest('exec', params),
      digests.ofRequest('other', params),
      ...[{ user: 8 }, { tool: 'gi' }, { args: ['ab'] }, { args: ['a b'] }, { args: ['b', 'a'] }, { dir: 'x' }].map(
        (change) => digests.ofRequest('exec', { ...params, ...change }),
      ),
      digests.ofKey('exec'),
    ].map(hex);
    expect(new Set(all).size).toBe(all.length);
    for (const digest of all) expect(digest).toMatch(/^[0-9a-f]{64}$/);
  });

  it('leaves the values of environment entries out, and keeps their names', () => {
    expect(ofExec({ env: ['TOKEN=one', 'A=b=c'] })).toBe(ofExec({ env: ['TOKEN=two', 'A='] }));
    expect(ofExec({ env: ['TOKEN=one'] })).not.toBe(ofExec({ env: ['TOKEM=one'] }));
    expect(ofExec({ env: ['A=1'] })).not.toBe(ofExec({}));
  });

  it('is the same for an optional field that is empty and one that is absent', () => {
    for (const empty of [{ env: [] }, { args: [] }, { dir: '' }, { agent: '' }]) expect(ofExec(empty)).toBe(ofExec({}));
  });

  it('is the same for every order of fields', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.infiniteStream(fc.nat()), (params, random) => {
        const entries = Object.entries(params).filter(([name]) => name !== 'env');
        const shuffled = entries
          .map((entry) => ({ entry, at: random.next().value ?? 0 }))
          .sort((a, b) => a.at - b.at)
          .map(({ entry }) => entry);
        const [first, second] = [entries, shuffled].map((list) => digests.ofRequest('exec', Object.fromEntries(list)));
        expect(first).toStrictEqual(second);
      }),
    );
  });

  it('is not the same for two requests that differ', () => {
    fc.assert(
      fc.property(fc.array(fc.string()), fc.array(fc.string()), (one, two) => {
        expect(ofExec({ args: one }) === ofExec({ args: two })).toBe(JSON.stringify(one) === JSON.stringify(two));
      }),
    );
  });
});

it('the key is made once, for root alone, and read again', () => {
  const path = join(stateFolder(), 'ledger.key');
  const { key, isNew } = readOrMakeKey(path);
  expect(isNew).toBe(true);
  expect(key).toHaveLength(32);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readFileSync(path).equals(key)).toBe(true);
  expect(readOrMakeKey(path)).toEqual({ key, isNew: false });
});
