import { describe, expect, it } from 'vitest';
import type { FsVerb } from '../../../../helper/contract/fs.ts';
import { type ErrorCode, Refusal } from '../../../../protocol/errors.ts';
import { refusedWith } from './support.ts';
import { commit, env, exits, id, inClone, scratch, setup, url, withToken } from './workflow-under-test.ts';

const tip = 'd'.repeat(40);

/** Lets the helper refuse one verb. */
const refuse = ({ helpers }: ReturnType<typeof setup>, verb: FsVerb, code: ErrorCode): void => {
  const { answer } = helpers;
  helpers.answer = (call) => {
    if (call.verb === verb) throw new Refusal(code);
    return answer(call);
  };
};

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

describe('a worktree', () => {
  const params = { user: 7, project: 'group__proj', conversation: id, baseBranch: 'main', env };
  const make = (parts: ReturnType<typeof setup>) => parts.handlers['repo.worktree'](params, parts.context);
  const free = { project: 'clone', worktree: 'absent' };
  const looks = ['config', 'fetch', 'rev-parse', 'for-each-ref', 'worktree prune', 'rev-parse'];
  const takes = [...looks, 'fetch', 'rev-parse'];
  const all = [...takes, 'update-ref', 'for-each-ref', 'worktree add'];

  it('has the token only while the clean repository fetches, from the checked URL', async () => {
    const parts = setup({}, free);
    expect(await make(parts)).toMatchObject({
      ...{ ok: true, folder: `work/${id}/group__proj`, branch: `chat/${id}`, commit },
      workspaceId: `7:work/${id}/group__proj`,
    });
    expect(parts.words()).toStrictEqual(all);
    expect(withToken(parts.runs.plans)).toStrictEqual([['fetch', `-C ${scratch} --git-dir=clean.git`]]);
    expect(parts.runs.plans[1]?.args).toContain(url);
    expect(parts.runs.plans.at(-1)?.args.at(-1)).toBe(commit);
    expect(parts.helpers.calls.map(({ call }) => call)).toStrictEqual([
      { verb: 'repository', project: 'group__proj', worktree: `work/${id}/group__proj` },
      { verb: 'scratch', clean: { format: 'sha1', borrows: null } },
      {
        verb: 'unregister',
        project: 'group__proj',
        worktree: `work/${id}/group__proj`,
        refs: [`refs/heads/chat/${id}`, 'refs/remotes/origin/main', `refs/lost/chat/${id}/1`],
      },
      { verb: 'place', path: `work/${id}/group__proj`, project: 'group__proj' },
      { verb: 'clear' },
    ]);
    expect(parts.begun).toStrictEqual([0]);
  });

  it('of an agent has its own folder and branch', async () => {
    const parts = setup({}, free);
    const asked = { user: 7, project: 'group__proj', id, baseBranch: 'main' };
    expect(await parts.handlers['repo.agent_worktree'](asked, parts.context)).toMatchObject({
      folder: `work/agent-${id}/group__proj`,
      branch: `agent-id/${id}`,
    });
  });

  const [head, lost] = [`refs/heads/chat/${id}`, `refs/lost/chat/${id}`];
  const refs = (...lines: readonly (readonly [string, string, string?])[]) => ({
    'for-each-ref': { stdout: lines.map(([name, sha, at = '']) => `${name}\0${sha}\0${at}\n`).join('') },
  });
  const locksTaken = ({ helpers }: ReturnType<typeof setup>) =>
    helpers.calls.flatMap(({ call }) => (call.verb === 'unregister' ? [call.refs] : []));

  it('keeps a left-over tip before the branch is moved, its lock like the others’ taken away', async () => {
    const parts = setup(refs([head, tip], [`${lost}/4`, commit]), free);
    expect(await make(parts)).toMatchObject({ ok: true });
    expect(parts.words()).toStrictEqual([...all.slice(0, -1), 'update-ref', 'worktree add']);
    expect(parts.runs.plans.at(-2)?.args.slice(-4)).toStrictEqual(['update-ref', `${lost}/5`, tip, '']);
    expect(locksTaken(parts)).toStrictEqual([[head, 'refs/remotes/origin/main', `${lost}/5`]]);
  });

  it('keeps the tip of a branch that a worktree had until that was taken off the list', async () => {
    const [before, after] = [refs([head, tip, '/gone'])['for-each-ref'], refs([head, tip])['for-each-ref']];
    const parts = setup({ 'for-each-ref': [before, after] }, free);
    expect(await make(parts)).toMatchObject({ ok: true });
    expect(parts.runs.plans.at(-2)?.args.slice(-4)).toStrictEqual(['update-ref', `${lost}/1`, tip, '']);
    expect(locksTaken(parts)).toStrictEqual([[head, 'refs/remotes/origin/main', `${lost}/1`]]);
  });

  it.each([
    ['it is the same commit', refs([head, commit])],
    ['a worktree has it', refs([head, tip, '/elsewhere'])],
    ['it is kept already', refs([head, tip], [`${lost}/1`, tip])],
  ])('keeps no tip when %s', async (_why, says) => {
    const parts = setup(says, free);
    expect(await make(parts)).toMatchObject({ ok: true });
    expect(parts.words()).toStrictEqual(all);
  });

  it('is not made when the tip can’t be kept, or the branches not be read', async () => {
    // The first is the base branch's, whose new commit nothing needs.
    const unkept = setup({ ...refs([head, tip]), 'update-ref': exits(1) }, free);
    expect(await make(unkept)).toMatchObject({ ok: false, exitCode: 1, commit: null });
    expect(unkept.words().slice(-3)).toStrictEqual(['update-ref', 'for-each-ref', 'update-ref']);
    for (const says of [exits(128), [{}, exits(128)] as const]) {
      const unread = setup({ 'for-each-ref': says }, free);
      expect(await make(unread)).toMatchObject({ ok: false, exitCode: 128, commit: null });
      expect(unread.words().at(-1)).toBe('for-each-ref');
    }
  });

  it('is made though the clone can’t be let know the newest commit of the base branch', async () => {
    const parts = setup({ 'update-ref': exits(128) }, free);
    expect(await make(parts)).toMatchObject({ ok: true, exitCode: 0, commit });
    expect(parts.words()).toStrictEqual(all);
    expect(parts.runs.plans.at(-3)?.args.slice(-3)).toStrictEqual(['update-ref', 'refs/remotes/origin/main', commit]);
  });

  it('takes nothing over when the clone has the commit', async () => {
    const parts = setup({ [inClone]: { stdout: `${commit}\n` } }, free);
    expect(await make(parts)).toMatchObject({ ok: true, commit });
    expect(parts.words()).toStrictEqual([...looks, 'update-ref', 'for-each-ref', 'worktree add']);
  });

  it.each([
    ['git only said it has taken over', { [inClone]: exits(1) }, 1, takes],
    ['could not be taken over', { [`fetch refs/heads/base`]: exits(128) }, 128, [...looks, 'fetch']],
    ['can’t be looked for', { [inClone]: exits(128) }, 128, looks],
  ])('is not made of a commit that %s', async (_what, says, exitCode, words) => {
    const parts = setup(says, free);
    expect(await make(parts)).toMatchObject({ ok: false, exitCode, commit: null });
    expect(parts.words()).toStrictEqual(words);
  });

  it.each([
    ['scratch', 'workspace_broken', 'workspace_broken'],
    ['unregister', 'bad_target', 'uncertain'],
    ['place', 'exists', 'uncertain'],
    ['place', 'bad_target', 'uncertain'],
    ['place', 'file_failed', 'file_failed'],
  ] as const)('whose %s is refused with %s is refused with %s', async (verb, code, told) => {
    const parts = setup({}, free);
    refuse(parts, verb, code);
    expect(await refusedWith(make(parts))).toBe(told);
    expect([parts.helpers.order.at(-1), parts.isFree()]).toStrictEqual(['clear', true]);
  });

  it('is not made of what is no commit', async () => {
    for (const stdout of ['', 'HEAD\n', `${commit} x\n`, '-x\n', `${'C'.repeat(40)}\n`]) {
      const parts = setup({ 'rev-parse': { stdout } }, free);
      expect(await make(parts), stdout).toMatchObject({ ok: false, exitCode: 1, commit: null });
      expect(parts.words()).toStrictEqual(all.slice(0, 3));
    }
  });

  it.each([
    ['no clone', { project: 'absent', worktree: 'absent' }, 'no_project'],
    ['something else for a clone', { project: 'other', worktree: 'absent' }, 'no_project'],
    ['a worktree', { project: 'clone', worktree: 'linked' }, 'exists'],
    ['something else there', { project: 'clone', worktree: 'other' }, 'exists'],
  ])('with %s never begins', async (_what, look, code) => {
    const parts = setup({}, look);
    expect(await refusedWith(make(parts))).toBe(code);
    expect([parts.begun, parts.words(), parts.helpers.order]).toStrictEqual([[], [], ['repository']]);
  });
});
