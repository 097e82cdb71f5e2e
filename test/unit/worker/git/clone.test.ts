import { describe, expect, it } from 'vitest';
import { refusedWith } from './support.ts';
import { env, exits, refuse, scratch, setup, url, withToken } from './workflow-under-test.ts';

describe('a clone', () => {
  const clone = (parts: ReturnType<typeof setup>, change: object = {}) =>
    parts.handlers.clone({ user: 7, url, env, ...change }, parts.context);
  const nothing = { project: 'absent', worktree: null };

  it('is made in the scratch folder, the only step with the token, and moved', async () => {
    const parts = setup({}, nothing);
    expect(await clone(parts)).toMatchObject({ ok: true, folder: 'repos/group__proj' });
    expect(parts.words()).toStrictEqual(['clone', 'rev-parse', 'read-tree']);
    expect(withToken(parts.runs.plans)).toStrictEqual([['clone', `-C ${scratch} clone`]]);
    expect(parts.runs.plans[0]?.args.slice(-2)).toStrictEqual([url, 'tree']);
    expect(parts.helpers.order).toStrictEqual(['repository', 'scratch', 'place', 'clear']);
    expect(parts.begun).toStrictEqual([0]);
    expect(parts.quota.asked).toStrictEqual(['check 7', 'changed 7']);
  });

  it('of an empty repository is moved without files', async () => {
    const parts = setup({ 'rev-parse': exits(1) }, nothing);
    expect(await clone(parts)).toMatchObject({ ok: true, exitCode: 0 });
    expect(parts.words()).toStrictEqual(['clone', 'rev-parse']);
    expect(parts.helpers.order).toContain('place');
  });

  it('whose commit can’t be told is no empty one', async () => {
    const parts = setup({ 'rev-parse': exits(128) }, nothing);
    expect(await clone(parts)).toMatchObject({ ok: false, exitCode: 128 });
    expect(parts.words()).toStrictEqual(['clone', 'rev-parse']);
    expect(parts.helpers.order).not.toContain('place');
  });

  it('that can’t be placed changed nothing of the user’s, and is told so', async () => {
    const parts = setup({}, nothing);
    refuse(parts, 'place', 'exists');
    expect(await refusedWith(clone(parts))).toBe('exists');
  });

  it('that fails is nowhere', async () => {
    const parts = setup({ clone: exits(128) }, nothing);
    expect(await clone(parts)).toMatchObject({ ok: false, exitCode: 128, folder: 'repos/group__proj' });
    expect(parts.helpers.order).toStrictEqual(['repository', 'scratch', 'clear']);
  });

  it.each([
    ['another host', { url: 'https://evil.example/a/b' }, nothing, 'host_not_allowed'],
    ['a path into the work dir', { env: ['GIT_ASKPASS=/var/tmp/x'] }, nothing, 'bad_env'],
    ['something there', {}, { project: 'clone', worktree: null }, 'exists'],
    ['anything there', {}, { project: 'other', worktree: null }, 'exists'],
    ['a helper’s word of another kind', {}, { project: 'absent', worktree: null, more: 1 }, 'file_failed'],
  ])('with %s never begins', async (_what, change, look, code) => {
    const parts = setup({}, look);
    expect(await refusedWith(clone(parts, change))).toBe(code);
    expect([parts.begun, parts.words(), parts.isFree()]).toStrictEqual([[], [], true]);
    expect(parts.helpers.order).not.toContain('clear');
    expect(parts.quota.asked).not.toContain('changed 7');
  });
});
