import { describe, expect, test } from 'vitest';
import { faultOf } from '../../../protocol/fault.ts';

describe('what is logged of something unforeseen', () => {
  test('is its type and where it came from, never its message', () => {
    const fault = faultOf(new SyntaxError('planted\nplanted'));
    expect(fault.type).toBe('SyntaxError');
    expect(fault.stack).toContain('fault.test.ts');
    expect(JSON.stringify(fault)).not.toContain('planted');
  });

  test('is its code, for errors of the system', () => {
    expect(faultOf(Object.assign(new Error('planted'), { code: 'EPIPE' })).code).toBe('EPIPE');
  });

  test('is its type alone, for what is no error', () => {
    expect(faultOf('planted')).toEqual({ type: 'string', stack: '' });
  });
});
