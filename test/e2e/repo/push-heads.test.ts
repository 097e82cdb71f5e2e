import { afterAll, beforeAll, expect, test } from 'vitest';
import { clean, GitScene, refusal, type Work } from '../../support/git-scene.ts';
import { systemTools } from '../../support/user.ts';

const user = 616_000;
let scene: GitScene;
/** One clone, of which each test has a worktree of its own. */
let base: Work;

beforeAll(async () => {
  scene = await GitScene.start(systemTools('sh'));
  base = await scene.preparedClone(user);
});
afterAll(() => scene.stop());

/** What a user makes of the worktree's HEAD, and how it is seen to be so. */
const heads: readonly (readonly [string, string, string, RegExp])[] = [
  ['a protected branch', 'git checkout -q -b develop', 'protected_branch', /^refs\/heads\/develop$/],
  ['another protected one', 'git checkout -q -b release/1.0', 'protected_branch', /^refs\/heads\/release\/1\.0$/],
  [
    'main itself',
    'git update-ref --no-deref HEAD HEAD; git symbolic-ref HEAD refs/heads/main',
    'protected_branch',
    /^refs\/heads\/main$/,
  ],
  ['any other name', 'git checkout -q -b topic', 'wrong_branch', /^refs\/heads\/topic$/],
  ['a longer name', 'git checkout -q -b "$B-x"', 'wrong_branch', /^refs\/heads\/chat\/.*-x$/],
  [
    'the name and a blank that is no ASCII one',
    'git checkout -q -b "$B$(printf "\\302\\240")"',
    'wrong_branch',
    /^refs\/heads\/chat\/[0-9a-f-]{36}\u00a0$/,
  ],
  [
    'the name in capitals',
    'git checkout -q -b "$(echo $B | tr a-f A-F)" || git symbolic-ref HEAD "refs/heads/CHAT/x"',
    'wrong_branch',
    /[A-F]/,
  ],
  [
    'another conversation’s',
    'git checkout -q -b chat/00000000-0000-4000-8000-000000000000',
    'wrong_branch',
    /^refs\/heads\/chat\/0{8}-/,
  ],
  [
    'an agent’s of the same id',
    'git checkout -q -b "agent-id/$(basename "$B")"',
    'wrong_branch',
    /^refs\/heads\/agent-id\//,
  ],
  ['no branch at all', 'git checkout -q --detach', 'wrong_branch', /^detached$/],
  ['a branch that is not born', 'git checkout -q --orphan unborn', 'wrong_branch', /^refs\/heads\/unborn$/],
  ['a tag of its name', 'git tag "$B"; git symbolic-ref HEAD "refs/tags/$B"', 'wrong_branch', /^refs\/tags\/chat\//],
  [
    'a remote’s branch of its name',
    'git update-ref "refs/remotes/origin/$B" HEAD; git symbolic-ref HEAD "refs/remotes/origin/$B"',
    'wrong_branch',
    /^refs\/remotes\//,
  ],
  [
    'a branch named as an option',
    'git update-ref refs/heads/--mirror HEAD; git symbolic-ref HEAD refs/heads/--mirror',
    'wrong_branch',
    /^refs\/heads\/--mirror$/,
  ],
  [
    'a name below its own',
    'git update-ref -d "refs/heads/$B"; git update-ref "refs/heads/$B/x" main; git symbolic-ref HEAD "refs/heads/$B/x"',
    'wrong_branch',
    /\/x$/,
  ],
  [
    'its name twice',
    'git update-ref "refs/heads/refs/heads/$B" HEAD; git symbolic-ref HEAD "refs/heads/refs/heads/$B"',
    'wrong_branch',
    /^refs\/heads\/refs\/heads\//,
  ],
];

test.each(heads)('HEAD on %s: refused, and nothing is pushed', async (_what, script, code, isSo) => {
  const work = await scene.preparedBeside(base);
  await scene.commit(work);
  const refs = work.repository.refs();
  await scene.sh(work.user, work.folder, `B=${work.branch}; ${script}`);
  expect(await scene.sh(work.user, work.folder, 'git symbolic-ref -q HEAD || echo detached')).toMatch(isSo);
  const asked = scene.server.seen.length;
  const answer = await scene.push(work);
  expect(refusal(answer), answer.text).toEqual([403, code]);
  const line = await scene.service.audited(({ operationId }) => operationId === answer.body.operationId);
  expect(line).toMatchObject({ action: 'repo.push', user: work.user, status: 'denied', reason: code });
  expect(work.repository.refs()).toEqual(refs);
  expect(work.repository.pushed()).toEqual([]);
  expect(scene.server.seen.slice(asked)).toEqual([]);
  expect(scene.leftIn(work.user)).toEqual(clean(work.project));
});

test('a branch that is a name for another one is not what it seems: refused, or its own commit is pushed to its own ref', async () => {
  const work = await scene.preparedBeside(base);
  const topic = await scene.commit(work, 'topic');
  const refs = work.repository.refs();
  await scene.sh(
    work.user,
    work.folder,
    `git update-ref refs/heads/main-too HEAD; git update-ref -d refs/heads/${work.branch}; git symbolic-ref refs/heads/${work.branch} refs/heads/main-too`,
  );
  expect(await scene.git(work.user, work.folder, 'symbolic-ref', `refs/heads/${work.branch}`)).toBe(
    'refs/heads/main-too',
  );
  const answer = await scene.push(work);
  if (answer.status === 200) expect(answer.body).toMatchObject({ ok: true, commit: topic });
  else expect(refusal(answer)).toEqual([403, 'wrong_branch']);
  const ref = `refs/heads/${work.branch}`;
  expect(work.repository.refs()).toEqual(answer.status === 200 ? { ...refs, [ref]: topic } : refs);
});

test.each([
  ['an empty folder', 'mkdir "$W"'],
  ['a folder with a repository of its own', 'git init -q -b "$B" "$W"'],
  ['a link to the worktree', 'mv "$W.away" "$W.real"; ln -s "$W.real" "$W"'],
  ['the clone, linked', 'ln -s "$HOME/repos/$P" "$W"'],
])('in the place of the worktree is %s: refused, and nothing is pushed', async (_what, script) => {
  const work = await scene.preparedBeside(base);
  await scene.commit(work);
  const refs = work.repository.refs();
  const names = `B=${work.branch}; P=${work.project}; W=$HOME/${work.folder}`;
  await scene.sh(work.user, '', `${names}; mv "$W" "$W.away"; ${script}`);
  const answer = await scene.push(work);
  expect([400, 403, 404], answer.text).toContain(answer.status);
  expect(work.repository.refs()).toEqual(refs);
  expect(work.repository.pushed()).toEqual([]);
});
