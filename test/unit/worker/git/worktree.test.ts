import { describe, expect, it } from 'vitest';
import { refusedWith } from './support.ts';
import {
  atTree,
  branches,
  commit,
  env,
  exits,
  id,
  inClone,
  refuse,
  scratch,
  setup,
  url,
  withToken,
} from './workflow-under-test.ts';

const tip = 'd'.repeat(40);

describe('a worktree', () => {
  const params = { user: 7, project: 'group__proj', conversation: id, baseBranch: 'main', env };
  const make = (parts: ReturnType<typeof setup>) => parts.handlers['repo.worktree'](params, parts.context);
  const free = { project: 'clone', worktree: 'absent' };
  const looks = ['config', 'fetch', 'rev-parse', 'for-each-ref', 'worktree prune', 'rev-parse'];
  const takes = [...looks, 'fetch', 'rev-parse'];
  const makes = ['worktree add', 'for-each-ref'];
  const all = [...takes, 'update-ref', 'for-each-ref', ...makes];

  it('has the token only while the clean repository fetches, from the checked URL', async () => {
    const parts = setup({}, free);
    expect(await make(parts)).toMatchObject({
      ...{ ok: true, folder: `work/${id}/group__proj`, branch: `chat/${id}`, commit },
      workspaceId: `7:work/${id}/group__proj`,
    });
    expect(parts.words()).toStrictEqual(all);
    expect(withToken(parts.runs.plans)).toStrictEqual([['fetch', `-C ${scratch} --git-dir=clean.git`]]);
    expect(parts.runs.plans[1]?.args).toContain(url);
    expect(parts.runs.plans.at(-2)?.args.at(-1)).toBe(commit);
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
    const made = atTree.replace('refs/heads/chat/', 'refs/heads/agent-id/');
    const parts = setup({ 'for-each-ref': branches('', '', made) }, free);
    const asked = { user: 7, project: 'group__proj', id, baseBranch: 'main' };
    expect(await parts.handlers['repo.agent_worktree'](asked, parts.context)).toMatchObject({
      ok: true,
      folder: `work/agent-${id}/group__proj`,
      branch: `agent-id/${id}`,
    });
  });

  const [head, lost] = [`refs/heads/chat/${id}`, `refs/lost/chat/${id}`];
  const line = (name: string, sha: string, at = '', target = '') => `${name}\0${sha}\0${at}\0${target}\n`;
  const locksTaken = ({ helpers }: ReturnType<typeof setup>) =>
    helpers.calls.flatMap(({ call }) => (call.verb === 'unregister' ? [call.refs] : []));

  it('keeps a left-over tip before the branch is moved, its lock like the others’ taken away', async () => {
    const parts = setup({ 'for-each-ref': branches(line(head, tip) + line(`${lost}/4`, commit)) }, free);
    expect(await make(parts)).toMatchObject({ ok: true });
    expect(parts.words()).toStrictEqual([...all.slice(0, -2), 'update-ref', ...makes]);
    expect(parts.runs.plans.at(-3)?.args.slice(-4)).toStrictEqual(['update-ref', `${lost}/5`, tip, '']);
    expect(locksTaken(parts)).toStrictEqual([[head, 'refs/remotes/origin/main', `${lost}/5`]]);
  });

  it('keeps the tip of a branch that a worktree had until that was taken off the list', async () => {
    const parts = setup({ 'for-each-ref': branches(line(head, tip, '/gone'), line(head, tip)) }, free);
    expect(await make(parts)).toMatchObject({ ok: true });
    expect(parts.runs.plans.at(-3)?.args.slice(-4)).toStrictEqual(['update-ref', `${lost}/1`, tip, '']);
    expect(locksTaken(parts)).toStrictEqual([[head, 'refs/remotes/origin/main', `${lost}/1`]]);
  });

  it.each([
    ['it is the same commit', line(head, commit)],
    ['a worktree has it', line(head, tip, '/elsewhere')],
    ['it is kept already', line(head, tip) + line(`${lost}/1`, tip)],
  ])('keeps no tip when %s', async (_why, told) => {
    const parts = setup({ 'for-each-ref': branches(told) }, free);
    expect(await make(parts)).toMatchObject({ ok: true });
    expect(parts.words()).toStrictEqual(all);
  });

  it('is not made when the tip can’t be kept, or the branches not be read', async () => {
    // The first is the base branch's, whose new commit nothing needs.
    const unkept = setup({ 'for-each-ref': branches(line(head, tip)), 'update-ref': exits(1) }, free);
    expect(await make(unkept)).toMatchObject({ ok: false, exitCode: 1, commit: null });
    expect(unkept.words().slice(-3)).toStrictEqual(['update-ref', 'for-each-ref', 'update-ref']);
    for (const says of [exits(128), [{}, exits(128)], [{}, {}, exits(128)]] as const) {
      const unread = setup({ 'for-each-ref': says }, free);
      expect(await make(unread)).toMatchObject({ ok: false, exitCode: 128, commit: null });
      expect(unread.words().at(-1)).toBe('for-each-ref');
    }
  });

  it('takes a branch that is another one’s name off, and neither keeps nor sets what that names', async () => {
    const parts = setup({ 'for-each-ref': branches(line(head, tip, '', 'refs/heads/main')) }, free);
    expect(await make(parts)).toMatchObject({ ok: true });
    expect(parts.words()).toStrictEqual([...all.slice(0, -2), 'symbolic-ref', ...makes]);
    expect(parts.runs.plans.at(-3)?.args.slice(-3)).toStrictEqual(['symbolic-ref', '--delete', head]);
    const failing = setup(
      { 'for-each-ref': branches(line(head, tip, '', 'refs/heads/main')), 'symbolic-ref': exits(1) },
      free,
    );
    expect(await make(failing)).toMatchObject({ ok: false, commit: null });
    expect(failing.words()).not.toContain('worktree add');
  });

  it.each([
    ['at another commit', line(head, tip, `${scratch}/tree`)],
    ['in another place', line(head, commit, '/elsewhere')],
    ['as another name', line(head, commit, `${scratch}/tree`, 'refs/heads/main')],
    ['nowhere', ''],
    ['of another name', atTree.replace('refs/heads/', 'refs/heads/x/')],
  ])('whose branch is seen %s afterwards is not placed', async (_where, made) => {
    const parts = setup({ 'for-each-ref': branches('', '', made) }, free);
    expect(await make(parts)).toMatchObject({ ok: false, exitCode: 1, commit: null });
    expect(parts.helpers.order).toStrictEqual(['repository', 'scratch', 'unregister', 'discard', 'clear']);
  });

  it('is made though the clone can’t be let know the newest commit of the base branch', async () => {
    const parts = setup({ 'update-ref': exits(128) }, free);
    expect(await make(parts)).toMatchObject({ ok: true, exitCode: 0, commit });
    expect(parts.words()).toStrictEqual(all);
    expect(parts.runs.plans.at(-4)?.args.slice(-3)).toStrictEqual(['update-ref', 'refs/remotes/origin/main', commit]);
  });

  it('takes nothing over when the clone has the commit', async () => {
    const parts = setup({ [inClone]: { stdout: `${commit}\n` } }, free);
    expect(await make(parts)).toMatchObject({ ok: true, commit });
    expect(parts.words()).toStrictEqual([...looks, 'update-ref', 'for-each-ref', ...makes]);
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
