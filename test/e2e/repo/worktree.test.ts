import { randomUUID } from 'node:crypto';
import { existsSync, renameSync, rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ask } from '../../support/files.ts';
import { beside, clean, done, failed, GitScene, identity, refusal, type Work } from '../../support/git-scene.ts';
import { systemTools } from '../../support/user.ts';

let scene: GitScene;
let next = 614_000;

beforeAll(async () => {
  scene = await GitScene.start(systemTools('sh'));
});
afterAll(() => scene.stop());

const refsOf = async ({ user, project }: Work, pattern = 'refs'): Promise<string[]> =>
  (await scene.git(user, `repos/${project}`, 'for-each-ref', '--format=%(refname) %(objectname)', pattern))
    .split('\n')
    .filter((line) => line !== '');
/** The folders that git knows as worktrees of the clone, itself left out. */
const registered = async ({ user, project }: Work): Promise<string[]> =>
  (await scene.git(user, `repos/${project}`, 'worktree', 'list', '--porcelain'))
    .split('\n')
    .filter((line) => line.startsWith('worktree ') && !line.endsWith(`/repos/${project}`))
    .map((line) => line.slice(line.indexOf('/home/') + '/home/'.length));

test('a worktree has its folder, its branch, and the newest commit of its base, though the clone is older', async () => {
  const work = await scene.cloned(next++);
  const old = work.repository.tip('main');
  const tip = work.repository.commit('main', { 'README.md': 'second\n', 'new.txt': 'n\n' }, 'second');
  const answer = await scene.worktree(work);
  const body = done(answer);
  expect(Object.keys(body).sort()).toEqual([
    ...['branch', 'commit', 'durationMs', 'exitCode', 'folder', 'ok', 'operationId', 'stderr', 'stdout'],
    ...['timedOut', 'truncated', 'workspaceId'],
  ]);
  expect(body).toMatchObject({
    folder: work.folder,
    branch: work.branch,
    commit: tip,
    workspaceId: `${work.user}:${work.folder}`,
    exitCode: 0,
    timedOut: false,
  });
  const git = (...args: string[]) => scene.git(work.user, work.folder, ...args);
  expect(await git('symbolic-ref', 'HEAD')).toBe(`refs/heads/${work.branch}`);
  expect(await git('rev-list', 'HEAD')).toBe(tip);
  expect(await git('status', '--porcelain')).toBe('');
  expect(await git('show', 'HEAD:README.md')).toBe('second');
  expect(await scene.sh(work.user, work.folder, 'cat README.md new.txt; find . -perm /077 ! -type l')).toBe(
    'second\nn',
  );
  expect(await registered(work)).toEqual([work.folder]);
  // The clone's own files and branch are the user's: they stay as they were.
  expect(await scene.git(work.user, `repos/${work.project}`, 'rev-parse', 'HEAD')).toBe(old);
  expect(await scene.git(work.user, `repos/${work.project}`, 'status', '--porcelain')).toBe('');
  expect(work.repository.pushed()).toEqual([]);
  expect(scene.leftIn(work.user)).toEqual(clean(work.project));
});

test('the folder is a workspace: a process starts in it, files are read by it', async () => {
  const work = await scene.prepared(next++);
  const workspaceId = `${work.user}:${work.folder}`;
  const started = await scene.service.client.post('/v1/process/start', { workspaceId, tool: 'git', args: ['status'] });
  expect(started.status, started.text).toBe(200);
});

test('two conversations are apart, each from the newest commit; the same again is refused and changes nothing', async () => {
  const first = await scene.worked(next++);
  await scene.sh(first.user, first.folder, 'echo mine >mine.txt; echo changed >README.md');
  await scene.commit(first, 'mine');
  const second = beside(first);
  const tip = first.repository.commit('main', { 'later.txt': 'l\n' });
  expect(done(await scene.worktree(second)).commit).toBe(tip);
  expect(await scene.sh(first.user, second.folder, 'ls; cat README.md')).toBe('README.md\nlater.txt\nfirst');
  expect(await scene.sh(first.user, first.folder, 'ls; cat README.md')).toBe('README.md\nmine.txt\nchanged');
  const before = [await refsOf(first), await registered(first)];
  for (const again of [first, second]) expect(refusal(await scene.worktree(again))).toEqual([409, 'exists']);
  expect([await refsOf(first), await registered(first)]).toEqual(before);
  expect(await scene.sh(first.user, first.folder, 'cat mine.txt README.md')).toBe('mine\nchanged');
  expect(scene.leftIn(first.user)).toEqual(clean(first.project));
});

test('a base other than the clone’s branch; a branch that only looks like one option or refspec is just not there', async () => {
  const work = await scene.preparedClone(next++);
  const tip = work.repository.commit('release/1.0', { 'r.txt': 'r\n' });
  expect(done(await scene.worktree(work, { baseBranch: 'release/1.0' })).commit).toBe(tip);
  for (const baseBranch of ['+main', 'refs/heads/main', 'v1', 'mai', 'origin/main'])
    expect(failed(await scene.worktree(beside(work), { baseBranch })).commit, baseBranch).toBeNull();
  expect(await registered(work)).toEqual([work.folder]);
});

test('removed by hand: made again from the newest commit; what the old branch had is kept', async () => {
  const work = await scene.worked(next++);
  const lost: string[] = [];
  for (const round of ['one', 'two']) {
    lost.push(await scene.commit(work, round));
    rmSync(scene.at(work.user, `work/${work.conversation}`), { recursive: true });
    const tip = work.repository.commit('main', { 'README.md': round });
    expect(done(await scene.worktree(work)).commit).toBe(tip);
    expect(await scene.git(work.user, work.folder, 'rev-parse', 'HEAD', work.branch)).toBe(`${tip}\n${tip}`);
    expect(await registered(work)).toEqual([work.folder]);
    const kept = await refsOf(work, `refs/lost/chat/${work.conversation}`);
    expect(kept.map((line) => line.split(' ')[1]).sort(), round).toEqual([...lost].sort());
    for (const line of kept) expect(line).toMatch(new RegExp(`^refs/lost/chat/${work.conversation}/\\d+ `));
  }
  // Reachable, whole: git itself finds nothing missing.
  await scene.git(work.user, `repos/${work.project}`, 'fsck', '--connectivity-only');
});

test('removed by hand with nothing of its own: no need to keep anything twice', async () => {
  const work = await scene.worked(next++);
  rmSync(scene.at(work.user, work.folder), { recursive: true });
  done(await scene.worktree(work));
  expect((await refsOf(work, 'refs/lost')).length).toBeLessThanOrEqual(1);
});

test('A’s clean-up leaves B’s folder alone that was moved away for a while', async () => {
  const b = await scene.worked(next++);
  const a = beside(b);
  await scene.sh(b.user, b.folder, 'echo mine >mine.txt');
  const [place, away] = [scene.at(b.user, `work/${b.conversation}`), scene.at(b.user, 'away')];
  renameSync(place, away);
  done(await scene.worktree(a));
  const deleted = await ask(scene.service, 'files/delete', { user: b.user, path: `work/${a.conversation}` });
  expect(deleted.status, deleted.text).toBe(200);
  done(await scene.worktree(a));
  renameSync(away, place);
  expect(await scene.git(b.user, b.folder, 'status', '--porcelain')).toBe('?? mine.txt');
  expect(await scene.git(b.user, b.folder, 'symbolic-ref', 'HEAD')).toBe(`refs/heads/${b.branch}`);
  expect([...(await registered(b))].sort()).toEqual([a.folder, b.folder].sort());
  await scene.commit(b);
  done(await scene.push(b));
});

test('a branch that another worktree holds is not taken from it', async () => {
  const work = await scene.preparedClone(next++);
  const { user, project } = work;
  await scene.git(user, `repos/${project}`, 'checkout', '--quiet', '-b', work.branch);
  const own = await scene.commit({ user, folder: `repos/${project}` }, 'own');
  const answer = await scene.worktree(work);
  expect(answer.body.ok, answer.text).not.toBe(true);
  expect(answer.status, answer.text).toBeLessThan(500);
  expect(await scene.git(user, `repos/${project}`, 'rev-parse', 'HEAD', work.branch)).toBe(`${own}\n${own}`);
  expect(existsSync(scene.at(user, work.folder))).toBe(false);
  expect(scene.leftIn(user)).toEqual(clean(project));
});

test('something else in its place stays: a file, an empty folder, a link', async () => {
  const work = await scene.preparedClone(next++);
  for (const make of ['echo f >"$P"', 'mkdir "$P"', 'ln -s ../../repos "$P"', 'ln -s nowhere "$P"']) {
    const it = beside(work);
    await scene.sh(it.user, '', `mkdir -p work/${it.conversation}; P=${it.folder}; ${make}`);
    expect(refusal(await scene.worktree(it)), make).toEqual([409, 'exists']);
  }
  expect(await registered(work)).toEqual([]);
});

test('no such base branch: git’s words, nothing left, and it can be made of another one', async () => {
  const work = await scene.preparedClone(next++);
  const before = await refsOf(work);
  const body = failed(await scene.worktree(work, { baseBranch: 'nowhere' }));
  expect(body).toMatchObject({ commit: null, folder: work.folder, branch: work.branch, timedOut: false });
  expect(body.exitCode).not.toBe(0);
  expect(body.stderr).toMatch(/find remote ref.*nowhere/);
  expect(await refsOf(work)).toEqual(before);
  expect(existsSync(scene.at(work.user, work.folder))).toBe(false);
  expect(scene.leftIn(work.user)).toEqual(clean(work.project));
  const line = await scene.service.audited(({ operationId }) => operationId === body.operationId);
  expect(line).toMatchObject({ action: 'repo.worktree', exit: 128, status: 'ok' });
  done(await scene.worktree(work));
});

test('an empty repository: cloned, and no worktree of it, in git’s words, until it has a commit', async () => {
  const user = next++;
  const repository = scene.server.repository('group/empty');
  done(await scene.ask('clone', { user, url: scene.server.url('group/empty.git') }));
  const [project, conversation] = ['group__empty', randomUUID()];
  const make = () => scene.ask('worktree', { user, project, conversation, baseBranch: 'main' });
  expect(failed(await make()).stderr).toMatch(/find remote ref.*main/);
  expect(scene.leftIn(user)).toEqual(clean(project));
  const tip = repository.commit('main', { 'a.txt': 'a\n' });
  expect(done(await make()).commit).toBe(tip);
});

test('no such clone, another user’s, and what is none', async () => {
  const work = await scene.preparedClone(next++);
  const { user, project } = work;
  await scene.git(user, 'repos', 'init', '--quiet', '--bare', 'bare');
  await scene.sh(user, 'repos', 'mkdir folder; echo f >file');
  expect(refusal(await scene.worktree(work, { project: 'group__none' }))).toEqual([404, 'no_project']);
  expect(refusal(await scene.worktree(work, { user: next++ }))).toEqual([404, 'no_project']);
  const asked = scene.server.seen.length;
  for (const none of ['bare', 'folder', 'file']) {
    const { status, body } = await scene.worktree(work, { project: none });
    expect([400, 404], `${none}: ${body.error}`).toContain(status);
  }
  expect(scene.server.seen).toHaveLength(asked);
  done(await scene.worktree(work, { project }));
});

test('an agent’s: a folder and a branch of its own kind, deleted by the file route and made again', async () => {
  const work = await scene.prepared(next++);
  const { user, project } = work;
  const id = randomUUID();
  const make = () => scene.ask('agent-worktree', { user, project, id, baseBranch: 'main' });
  const folder = `work/agent-${id}/${project}`;
  const made = {
    folder,
    branch: `agent-id/${id}`,
    commit: work.repository.tip('main'),
    workspaceId: `${user}:${folder}`,
  };
  const body = done(await make());
  expect(body).toMatchObject(made);
  const line = await scene.service.audited(({ operationId }) => operationId === body.operationId);
  expect(line).toMatchObject({ action: 'repo.agent_worktree', user, status: 'ok', exit: 0 });
  expect(await scene.git(user, folder, 'symbolic-ref', 'HEAD')).toBe(`refs/heads/agent-id/${id}`);
  expect(refusal(await make())).toEqual([409, 'exists']);
  await scene.git(user, folder, ...identity, 'commit', '--quiet', '--allow-empty', '-m', 'agent');
  const deleted = await ask(scene.service, 'files/delete', { user, path: `work/agent-${id}` });
  expect(deleted.status, deleted.text).toBe(200);
  expect(await registered(work)).toEqual([work.folder]);
  expect(done(await make())).toMatchObject(made);
  expect([...(await registered(work))].sort()).toEqual([folder, work.folder].sort());
});

test('a space that no longer has the clone, after a reset: no_project; a new clone serves', async () => {
  const work = await scene.prepared(next++);
  expect((await ask(scene.service, 'workspace/reset', { user: work.user })).status).toBe(200);
  expect(refusal(await scene.worktree(work))).toEqual([404, 'no_project']);
  const url = scene.server.url(`${work.project.replace('__', '/')}.git`);
  done(await scene.ask('clone', { user: work.user, url }));
  done(await scene.worktree(work));
});
