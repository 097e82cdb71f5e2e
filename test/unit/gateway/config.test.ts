import { describe, expect, test } from 'vitest';
import { takeConfig } from '../../../gateway/config.ts';

const long = 'x'.repeat(32);
const other = 'y'.repeat(40);

describe('tokens', () => {
  test.each([
    ['both', { RUNNER_TOKEN: long, RUNNER_TOKEN_PREVIOUS: other }, { current: long, previous: other }],
    ['one', { RUNNER_TOKEN: long }, { current: long, previous: undefined }],
    ['a short one', { RUNNER_TOKEN: long.slice(1) }, { current: undefined, previous: undefined }],
    [
      'a short previous one',
      { RUNNER_TOKEN: long, RUNNER_TOKEN_PREVIOUS: 'x' },
      { current: long, previous: undefined },
    ],
    ['only a previous one', { RUNNER_TOKEN_PREVIOUS: other }, { current: undefined, previous: undefined }],
    ['empty ones', { RUNNER_TOKEN: '', RUNNER_TOKEN_PREVIOUS: '' }, { current: undefined, previous: undefined }],
  ])('%s', (_name, environment, tokens) => {
    expect(takeConfig({ ...environment }).tokens).toEqual(tokens);
  });

  test('leave the environment, even when a setting is bad', () => {
    const environment: Record<string, string> = {
      RUNNER_TOKEN: long,
      RUNNER_TOKEN_PREVIOUS: other,
      RUNNER_ADDR: 'planted',
    };
    expect(() => takeConfig(environment)).toThrow('RUNNER_ADDR');
    expect(environment).toEqual({ RUNNER_ADDR: 'planted' });
  });
});

test('a bad setting is named, its value is not told', () => {
  try {
    takeConfig({ RUNNER_MAX_BODY_BYTES: 'planted', RUNNER_ADDR: 'planted' });
    expect.unreachable();
  } catch (error) {
    expect(String(error)).toMatch(/RUNNER_ADDR.*\n.*RUNNER_MAX_BODY_BYTES/);
    expect(String(error)).not.toContain('planted');
  }
});
