import { describe, expect, it } from 'vitest';
import { refusedWith, runExit } from './support.ts';
import { commit, env, id, scratch, setup, url, withToken } from './workflow-under-test.ts';

const tip = 'd'.repeat(40);

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
    const parts = setup({ 'rev-parse': { end: { kind: 'exit', exit: runExit({ exitCode: 1 }) } } }, nothing);
    expect(await clone(parts)).toMatchObject({ ok: true, exitCode: 0 });
    expect(parts.words()).toStrictEqual(['clone', 'rev-parse']);
    expect(parts.helpers.order).toContain('place');
  });

  it('that fails is nowhere', async () => {
    const parts = setup({ clone: { end: { kind: 'exit', exit: runExit({ exitCode: 128 }) } } }, nothing);
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
  });
});

describe('a worktree', () => {
  const params = { user: 7, project: 'group__proj', conversation: id, baseBranch: 'main', env };
  const make = (parts: ReturnType<typeof setup>) => parts.handlers['repo.worktree'](params, parts.context);
  const free = { project: 'clone', worktree: 'absent' };
  const all = ['config', 'fetch', 'rev-parse', 'worktree prune', 'fetch', 'cat-file', 'for-each-ref', 'worktree add'];

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
        refs: [`refs/heads/chat/${id}`, 'refs/remotes/origin/main'],
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

  it('keeps a left-over tip before the branch is moved, unless it is the same commit or held', async () => {
    const line = (sha: string, worktree = '') => ({ stdout: `refs/heads/chat/${id}\0${sha}\0${worktree}\n` });
    const kept = setup({ 'for-each-ref': line(tip) }, free);
    await make(kept);
    expect(kept.words()).toStrictEqual([...all.slice(0, -1), 'update-ref', 'worktree add']);
    expect(kept.runs.plans.at(-2)?.args.slice(-4)).toStrictEqual(['update-ref', `refs/lost/chat/${id}/1`, tip, '']);
    for (const says of [line(commit), line(tip, '/elsewhere')]) {
      const other = setup({ 'for-each-ref': says }, free);
      await make(other);
      expect(other.words()).toStrictEqual(all);
    }
    const failing = setup(
      { 'for-each-ref': line(tip), 'update-ref': { end: { kind: 'exit', exit: runExit({ exitCode: 1 }) } } },
      free,
    );
    expect(await make(failing)).toMatchObject({ ok: false, commit: null });
    expect(failing.words()).not.toContain('worktree add');
  });

  it('is not made of a commit that git only said it has taken over', async () => {
    const parts = setup({ 'cat-file': { end: { kind: 'exit', exit: runExit({ exitCode: 128 }) } } }, free);
    expect(await make(parts)).toMatchObject({ ok: false, commit: null });
    expect(parts.words()).not.toContain('worktree add');
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
    expect([parts.begun, parts.words()]).toStrictEqual([[], []]);
  });
});
