import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { announceCheckout, checkoutDefaults } from '../../../deploy/checkout.ts';

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'runner-test-worker-'));
});

afterEach(() => {
  rmSync(root, { recursive: true });
});

const tokenFile = (): string => join(root, 'var', 'token');

describe('what a checkout fills in', () => {
  it('is a token of its own, for its owner’s eyes alone, and a work dir within it', () => {
    const before = process.umask(0o022);
    try {
      const environment = checkoutDefaults(root, { LANG: 'C' });
      expect(environment['RUNNER_TOKEN']).toMatch(/^[0-9a-f]{64}$/);
      expect(environment).toStrictEqual({
        LANG: 'C',
        RUNNER_WORK_DIR: join(root, 'var', 'work'),
        RUNNER_TOKEN: readFileSync(tokenFile(), 'utf8').trim(),
      });
      expect(statSync(tokenFile()).mode & 0o7777).toBe(0o600);
      expect(statSync(join(root, 'var')).mode & 0o7777).toBe(0o711);
    } finally {
      process.umask(before);
    }
  });

  it('is made once: a second start has the same token', () => {
    const first = checkoutDefaults(root, {});
    const ino = statSync(tokenFile()).ino;
    expect(checkoutDefaults(root, {})).toStrictEqual(first);
    expect(statSync(tokenFile()).ino).toBe(ino);
  });

  it('is another token in another checkout', () => {
    const other = mkdtempSync(join(tmpdir(), 'runner-test-worker-'));
    try {
      expect(checkoutDefaults(other, {})['RUNNER_TOKEN']).not.toBe(checkoutDefaults(root, {})['RUNNER_TOKEN']);
    } finally {
      rmSync(other, { recursive: true });
    }
  });

  it.each([{ RUNNER_TOKEN: 'mine' }, { RUNNER_TOKEN_FILE: '/run/secrets/token' }])(
    'is no token when there is one: %j',
    (given) => {
      expect(checkoutDefaults(root, given)).toStrictEqual({ ...given, RUNNER_WORK_DIR: join(root, 'var', 'work') });
      expect(statSync(tokenFile(), { throwIfNoEntry: false })).toBeUndefined();
    },
  );

  it('leaves a work dir that was named', () => {
    expect(checkoutDefaults(root, { RUNNER_WORK_DIR: '/data' })['RUNNER_WORK_DIR']).toBe('/data');
    expect(checkoutDefaults(root, { RUNNER_WORK_DIR: '' })['RUNNER_WORK_DIR']).toBe(join(root, 'var', 'work'));
  });

  it('does not touch the mode of a token file that somebody gave to a group', () => {
    checkoutDefaults(root, {});
    chmodSync(tokenFile(), 0o640);
    checkoutDefaults(root, {});
    expect(statSync(tokenFile()).mode & 0o7777).toBe(0o640);
  });
});

describe('what a checkout says at its start', () => {
  it('is a request to paste that reads the token from its file, never the token itself', () => {
    const environment = checkoutDefaults(root, {});
    const said = announceCheckout(root, {});
    expect(said).toContain('http://127.0.0.1:8090/v1/exec');
    expect(said).toContain(`$(cat ${tokenFile()})`);
    expect(said).not.toContain(environment['RUNNER_TOKEN'] ?? 'no token');
  });

  it.each([
    [':9000', 'http://127.0.0.1:9000'],
    ['127.0.0.2:9001', 'http://127.0.0.2:9001'],
    ['[::1]:9002', 'http://[::1]:9002'],
  ])('names the address %s', (address, url) => {
    expect(announceCheckout(root, { RUNNER_ADDR: address })).toContain(`serving on ${url};`);
  });

  it('does not say a token that the operator gave', () => {
    const said = announceCheckout(root, { RUNNER_TOKEN: 'planted-token' });
    expect(said).toContain('Bearer $RUNNER_TOKEN"');
    expect(said).not.toContain('planted');
    expect(announceCheckout(root, { RUNNER_TOKEN_FILE: '/run/secrets/token' })).toContain(
      '$(cat "$RUNNER_TOKEN_FILE")',
    );
  });
});
