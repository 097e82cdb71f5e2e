import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { clean, done, failed, GitScene, refusal, type Work } from '../../support/git-scene.ts';
import { systemTools } from '../../support/user.ts';

let scene: GitScene;
let next = 615_000;
const none = '0'.repeat(40);

beforeAll(async () => {
  scene = await GitScene.start(systemTools('sh'));
});
afterAll(() => scene.stop());

/** All refs of the clone but the conversation's own branch. */
const otherRefs = async ({ user, project, branch }: Work): Promise<string[]> =>
  (await scene.git(user, `repos/${project}`, 'for-each-ref', '--format=%(refname) %(objectname)'))
    .split('\n')
    .filter((line) => !line.startsWith(`refs/heads/${branch} `));

describe('a push', () => {
  it('makes exactly one ref, at the commit of the worktree, and no option comes with it', async () => {
    const work = await scene.worked(next++);
    const [refs, own] = [work.repository.refs(), await otherRefs(work)];
    await scene.git(work.user, work.folder, 'tag', 'v1');
    await scene.sh(work.user, work.folder, 'echo new >new.txt; git add new.txt');
    const commit = await scene.commit(work);
    const answer = await scene.push(work);
    const body = done(answer);
    expect(Object.keys(body).sort()).toEqual([
      ...['branch', 'commit', 'durationMs', 'exitCode', 'ok', 'operationId', 'stderr', 'stdout', 'timedOut'],
      'truncated',
    ]);
    expect(body).toMatchObject({ branch: work.branch, commit, exitCode: 0, timedOut: false });
    const ref = `refs/heads/${work.branch}`;
    expect(work.repository.refs()).toEqual({ ...refs, [ref]: commit });
    expect(work.repository.pushed()).toEqual([`${ref} ${none} ${commit} options=0`]);
    expect(work.repository.git('show', `${commit}:new.txt`)).toBe('new');
    expect((await otherRefs(work)).filter((line) => !line.startsWith('refs/tags/v1 '))).toEqual(own);
    expect(scene.leftIn(work.user)).toEqual(clean(work.project));
    const line = await scene.service.audited(({ operationId }) => operationId === body.operationId);
    expect(line).toMatchObject({ action: 'repo.push', user: work.user, status: 'ok', exit: 0 });
  });

  it('goes on with more commits, and has nothing to do when there are none', async () => {
    const work = await scene.prepared(next++);
    const commits = [await scene.commit(work, 'one')];
    done(await scene.push(work));
    commits.push(await scene.commit(work, 'two'), await scene.commit(work, 'three'));
    expect(done(await scene.push(work)).commit).toBe(commits[2]);
    expect(done(await scene.push(work)).commit).toBe(commits[2]);
    const ref = `refs/heads/${work.branch}`;
    expect(work.repository.pushed()).toEqual([
      `${ref} ${none} ${commits[0]} options=0`,
      `${ref} ${commits[0]} ${commits[2]} options=0`,
    ]);
    expect(work.repository.git('rev-list', '--count', `main..${commits[2]}`)).toBe('3');
  });

  it('of a worktree without a commit of its own makes the branch', async () => {
    const work = await scene.prepared(next++);
    const commit = work.repository.tip('main');
    expect(done(await scene.push(work)).commit).toBe(commit);
    expect(work.repository.refs()).toHaveProperty([`refs/heads/${work.branch}`], commit);
  });

  it('works after upstream has moved on, and after another worktree has fetched that', async () => {
    const work = await scene.prepared(next++);
    const commit = await scene.commit(work);
    work.repository.commit('main', { 'README.md': 'moved\n' });
    work.repository.commit('main', { 'README.md': 'again\n' });
    expect(done(await scene.push(work)).commit).toBe(commit);
    const later = { ...work, conversation: randomUUID() };
    done(await scene.worktree(later));
    const more = await scene.commit(work, 'more');
    expect(done(await scene.push(work)).commit).toBe(more);
    expect(work.repository.git('rev-list', '--count', `main..${work.branch}`)).toBe('2');
  });

  it('is not forced on a remote that has moved on: ok false, git’s words, unchanged', async () => {
    const work = await scene.prepared(next++);
    await scene.commit(work, 'one');
    done(await scene.push(work));
    const theirs = work.repository.commit(work.branch, { 'theirs.txt': 't\n' }, 'theirs');
    const ours = await scene.commit(work, 'ours');
    const refs = work.repository.refs();
    const body = failed(await scene.push(work));
    expect(body).toMatchObject({ branch: work.branch, commit: ours, exitCode: 1 });
    expect(body.stderr).toMatch(/rejected/);
    expect(work.repository.refs()).toEqual(refs);
    expect(work.repository.tip(work.branch)).toBe(theirs);
    const line = await scene.service.audited(({ operationId }) => operationId === body.operationId);
    expect(line).toMatchObject({ action: 'repo.push', status: 'ok', exit: 1 });
  });

  it('that has gone back, or was written anew, is not forced either', async () => {
    const work = await scene.prepared(next++);
    await scene.commit(work, 'one');
    const two = await scene.commit(work, 'two');
    done(await scene.push(work));
    await scene.git(work.user, work.folder, 'reset', '--quiet', '--hard', 'HEAD~1');
    failed(await scene.push(work));
    expect(work.repository.tip(work.branch)).toBe(two);
  });

  it('that the server refuses is ok false in the server’s words', async () => {
    const work = await scene.prepared(next++);
    await scene.commit(work);
    work.repository.git('config', 'transfer.hideRefs', 'refs/heads/chat');
    const refs = work.repository.refs();
    expect(failed(await scene.push(work)).stdout).toMatch(/remote rejected.*hidden/);
    expect(work.repository.refs()).toEqual(refs);
  });

  it('without the password, or with a wrong one, is git’s failure', async () => {
    const work = await scene.prepared(next++);
    await scene.commit(work);
    const refs = work.repository.refs();
    failed(await scene.push(work, { env: scene.server.env('wrong') }));
    failed(await scene.push(work, { env: [`GIT_SSL_CAINFO=${scene.server.certificate}`] }));
    expect(work.repository.refs()).toEqual(refs);
    done(await scene.push(work));
  });

  it('of an agent’s branch is the same, for its own kind', async () => {
    const work = await scene.prepared(next++);
    const { user, project } = work;
    const id = randomUUID();
    const push = () => scene.ask('agent-push', { user, project, id });
    expect(refusal(await push())).toEqual([404, 'no_worktree']);
    const { folder = '' } = done(await scene.ask('agent-worktree', { user, project, id, baseBranch: 'main' }));
    const commit = await scene.commit({ user, folder });
    const body = done(await push());
    expect(body).toMatchObject({ branch: `agent-id/${id}`, commit });
    const line = await scene.service.audited(({ operationId }) => operationId === body.operationId);
    expect(line).toMatchObject({ action: 'repo.agent_push', user, status: 'ok' });
    expect(work.repository.pushed()).toEqual([`refs/heads/agent-id/${id} ${none} ${commit} options=0`]);
    await scene.git(user, folder, 'checkout', '--quiet', '-b', `chat/${id}`);
    expect(refusal(await push())).toEqual([403, 'wrong_branch']);
    // Nor is a conversation's worktree an agent's, or the other way round.
    expect(refusal(await scene.push(work, { conversation: id }))).toEqual([404, 'no_worktree']);
    expect(refusal(await scene.ask('agent-push', { user, project, id: work.conversation }))).toEqual([
      404,
      'no_worktree',
    ]);
  });
});

test('the right branch again: pushed; the caller can’t choose branch, ref or option', async () => {
  const work = await scene.prepared(next++);
  const commit = await scene.commit(work);
  await scene.git(work.user, work.folder, 'checkout', '--quiet', '-b', 'topic');
  expect(refusal(await scene.push(work))).toEqual([403, 'wrong_branch']);
  await scene.git(work.user, work.folder, 'checkout', '--quiet', work.branch);
  for (const more of [
    { force: true },
    { branch: 'main' },
    { refspec: 'x' },
    { args: [] },
    { baseBranch: 'main' },
    { url: 'x' },
  ])
    expect(refusal(await scene.push(work, more)), JSON.stringify(more)).toEqual([400, 'bad_request']);
  expect(work.repository.pushed()).toEqual([]);
  expect(done(await scene.push(work)).commit).toBe(commit);
});

test('no worktree, no clone, another user’s: no_worktree', async () => {
  const work = await scene.prepared(next++);
  await scene.commit(work);
  expect(refusal(await scene.push(work, { conversation: randomUUID() }))).toEqual([404, 'no_worktree']);
  expect(refusal(await scene.push(work, { project: 'group__none' }))).toEqual([404, 'no_worktree']);
  // Another user, with nothing, and with a clone of the same.
  const other = next++;
  expect(refusal(await scene.push(work, { user: other }))).toEqual([404, 'no_worktree']);
  const url = scene.server.url(`${work.project.replace('__', '/')}.git`);
  done(await scene.ask('clone', { user: other, url }));
  expect(refusal(await scene.push(work, { user: other }))).toEqual([404, 'no_worktree']);
  expect(work.repository.pushed()).toEqual([]);
  done(await scene.push(work));
});
