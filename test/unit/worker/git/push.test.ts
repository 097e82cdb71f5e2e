import { describe, expect, it } from 'vitest';
import { refusedWith, runExit } from './support.ts';
import { commit, env, exits, fetched, id, scratch, setup, url, withToken } from './workflow-under-test.ts';

const linked = { project: 'clone', worktree: 'linked' };
const folder = `work/${id}/group__proj`;
const push = (parts: ReturnType<typeof setup>) =>
  parts.handlers['repo.push']({ user: 7, project: 'group__proj', conversation: id, env }, parts.context);

describe('a push', () => {
  it('has the token only in the clean repository, for the checked commit, URL and ref', async () => {
    const parts = setup({}, linked);
    expect(await push(parts)).toMatchObject({ ok: true, branch: `chat/${id}`, commit });
    expect(parts.words()).toStrictEqual(['symbolic-ref', 'rev-parse', 'config', 'fetch', 'rev-parse', 'push']);
    expect(withToken(parts.runs.plans)).toStrictEqual([['push', `-C ${scratch} --git-dir=clean.git`]]);
    expect(parts.runs.plans.at(-1)?.args.slice(-2)).toStrictEqual([url, `${commit}:refs/heads/chat/${id}`]);
    expect(parts.runs.plans.slice(0, 3).map(({ directory }) => directory)).toStrictEqual([
      folder,
      folder,
      'repos/group__proj',
    ]);
    expect(parts.helpers.calls.map(({ call }) => call)).toStrictEqual([
      { verb: 'repository', project: 'group__proj', worktree: folder },
      { verb: 'scratch', clean: { format: 'sha1', borrows: 'group__proj' } },
      { verb: 'clear' },
    ]);
    expect(parts.begun).toStrictEqual([0]);
  });

  it('gathers that commit before, without the network, where nothing else of the user’s is', async () => {
    const parts = setup({}, linked);
    const { answer } = parts.helpers;
    const commandsBefore: (readonly [string, number])[] = [];
    parts.helpers.answer = (call) => {
      commandsBefore.push([call.verb, parts.runs.plans.length]);
      return answer(call);
    };
    await push(parts);
    expect(commandsBefore).toStrictEqual([
      ['repository', 0],
      ['scratch', 3],
      ['clear', 6],
    ]);
    const [gathering, looking] = parts.runs.plans.slice(3, 5);
    expect(gathering?.args.slice(1, 4)).toStrictEqual(['-C', scratch, '--git-dir=clean.git']);
    expect(gathering?.args.slice(-2)).toStrictEqual([`${scratch}/borrowed.git`, `${commit}:refs/heads/base`]);
    expect(gathering?.environment).toContain('GIT_ALLOW_PROTOCOL=file');
    expect(looking?.args.slice(1, 4)).toStrictEqual(['-C', scratch, '--git-dir=clean.git']);
    expect(looking?.args.at(-1)).toBe('refs/heads/base^{commit}');
  });

  it.each([
    ['could not be gathered', { fetch: exits(128) }, 128],
    ['was not gathered, whatever git said', { [fetched]: exits(1) }, 1],
    ['can’t be looked at', { [fetched]: exits(128, `${commit}\n`) }, 128],
    ['is another one when it is gathered', { [fetched]: { stdout: `${'e'.repeat(40)}\n` } }, 1],
    ['is one of several', { [fetched]: { stdout: `${commit}\n${commit}\n` } }, 1],
    ['is gathered as nothing', { [fetched]: { stdout: '' } }, 1],
  ])('of a commit that %s asks the network nothing', async (_what, says, exitCode) => {
    const parts = setup(says, linked);
    expect(await push(parts)).toMatchObject({ ok: false, exitCode, commit });
    expect(withToken(parts.runs.plans)).toStrictEqual([]);
  });

  it('of an agent has its own folder and branch', async () => {
    const parts = setup({ 'symbolic-ref': { stdout: `refs/heads/agent-id/${id}\n` } }, linked);
    const asked = { user: 7, project: 'group__proj', id };
    expect(await parts.handlers['repo.agent_push'](asked, parts.context)).toMatchObject({
      ok: true,
      branch: `agent-id/${id}`,
    });
    expect(parts.runs.plans.at(-1)?.args.at(-1)).toBe(`${commit}:refs/heads/agent-id/${id}`);
  });

  it('is never refused for the quota', async () => {
    const parts = setup({}, linked);
    await push(parts);
    expect(parts.quota.asked).toStrictEqual(['changed 7']);
  });

  it.each(['absent', 'other'])('from what is %s never begins', async (worktree) => {
    const parts = setup({}, { project: 'clone', worktree });
    expect(await refusedWith(push(parts))).toBe('no_worktree');
    expect([parts.begun, parts.words()]).toStrictEqual([[], []]);
  });

  it.each([
    ['a protected branch', { stdout: 'refs/heads/main\n' }, 'protected_branch'],
    ['another branch', { stdout: 'refs/heads/other\n' }, 'wrong_branch'],
    ['a tag of that name', { stdout: `refs/tags/chat/${id}\n` }, 'wrong_branch'],
    ['an option', { stdout: 'refs/heads/--mirror\n' }, 'wrong_branch'],
    ['one that ends with a space of another kind', { stdout: `refs/heads/chat/${id}\u00a0\n` }, 'wrong_branch'],
    ['one that ends with a line break', { stdout: `refs/heads/chat/${id}\n\n` }, 'wrong_branch'],
    ['no branch', exits(1), 'wrong_branch'],
  ] as const)('from a worktree on %s asks the network nothing', async (_what, says, code) => {
    const parts = setup({ 'symbolic-ref': says }, linked);
    expect(await refusedWith(push(parts))).toBe(code);
    expect(withToken(parts.runs.plans)).toStrictEqual([]);
    expect(parts.isFree()).toBe(true);
  });

  it.each([
    ['can’t be told', exits(128), 128],
    [
      'has no end',
      { stdout: `refs/heads/chat/${id}`, end: { kind: 'exit', exit: runExit({ stdoutCut: true }) } } as const,
      1,
    ],
  ])('from a worktree whose branch %s asks the network nothing', async (_what, says, exitCode) => {
    const parts = setup({ 'symbolic-ref': says }, linked);
    expect(await push(parts)).toMatchObject({ ok: false, exitCode, commit: null });
    expect(parts.words()).toStrictEqual(['symbolic-ref']);
  });

  const remote = (...entries: readonly string[]) => ({ stdout: entries.map((entry) => `${entry}\0`).join('') });
  it.each([
    ['another host', remote('remote.origin.url\nhttps://evil.example/group/proj.git')],
    ['another project', remote('remote.origin.url\nhttps://git.example/group/other.git')],
    ['another way', remote('remote.origin.url\nssh://git.example/group/proj.git')],
    ['a user', remote('remote.origin.url\nhttps://x@git.example/group/proj.git')],
    ['the last of several', remote(`remote.origin.url\n${url}`, 'remote.origin.url\nhttps://evil.example/group/proj')],
    ['two lines', remote(`remote.origin.url\n${url}\nhttps://evil.example/`)],
    ['a file', remote('remote.origin.url\n/etc')],
    ['an option', remote('remote.origin.url\n--upload-pack=x')],
    ['nothing', remote('remote.origin.url')],
    ['no remote', exits(1)],
  ])('to a URL of the user’s that leads to %s asks the network nothing', async (_what, says) => {
    const parts = setup({ config: says }, linked);
    expect(await refusedWith(push(parts))).toBe('host_not_allowed');
    expect(withToken(parts.runs.plans)).toStrictEqual([]);
  });

  it('goes to the last of several URLs, as git would', async () => {
    const parts = setup(
      { config: remote('remote.origin.url\nhttps://evil.example/a/b', `remote.origin.url\n${url}`) },
      linked,
    );
    expect(await push(parts)).toMatchObject({ ok: true });
    expect(parts.runs.plans.at(-1)?.args.at(-2)).toBe(url);
  });

  it.each([
    ['sha256', 'sha256'],
    ['sha1', 'sha1'],
    ['other', 'sha1'],
  ])('of the format %s borrows as %s', async (told, format) => {
    const parts = setup({ config: remote(`remote.origin.url\n${url}`, `extensions.objectformat\n${told}`) }, linked);
    await push(parts);
    expect(parts.helpers.calls[1]?.call).toMatchObject({ verb: 'scratch', clean: { format } });
  });

  it.each([1, 128])('of a branch without a commit (%i) is a failure that was not tried', async (exitCode) => {
    const parts = setup({ 'rev-parse': exits(exitCode) }, linked);
    expect(await push(parts)).toMatchObject({ ok: false, exitCode, commit: null });
    expect(withToken(parts.runs.plans)).toStrictEqual([]);
  });

  it('that the remote refuses tells what was to be pushed', async () => {
    const parts = setup({ push: exits(1, '!\t[rejected]\n') }, linked);
    expect(await push(parts)).toMatchObject({ ok: false, exitCode: 1, commit });
    expect(parts.told('stdout')).toBe('!\t[rejected]\n');
  });
});
