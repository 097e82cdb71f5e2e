import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { unreached } from '../../support/counting-server.ts';
import { clean, done, failed, GitScene, refusal } from '../../support/git-scene.ts';
import { homeOf, systemTools } from '../../support/user.ts';

let scene: GitScene;
let next = 610_000;

beforeAll(async () => {
  scene = await GitScene.start(systemTools('sh'));
});
afterAll(() => scene.stop());

const clone = (user: number, url: string, env = scene.server.env()) => scene.ask('clone', { user, url, env });
const lfsPointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${'1'.repeat(64)}\nsize 12345\n`;

test('a clone is one commit of one branch, without tags, submodules, large files or hooks', async () => {
  const user = next++;
  const repository = scene.server.repository('group/rich');
  const old = repository.commit('main', { 'a.txt': 'old\n' });
  const tip = repository.commit('main', {
    'a.txt': 'new\n',
    run: { program: '#!/bin/sh\n' },
    '.gitattributes': '*.bin filter=lfs diff=lfs merge=lfs -text\n',
    'large.bin': lfsPointer,
    '.gitmodules': `[submodule "sub"]\n\tpath = sub\n\turl = https://127.0.0.1:${scene.counting.port}/g/sub.git\n`,
    sub: { submodule: old },
  });
  repository.commit('other', { 'b.txt': 'b\n' });
  repository.git('update-ref', 'refs/tags/v1', tip);
  const asked = scene.server.seen.length;

  const answer = await clone(user, scene.server.url('group/rich.git'));
  const body = done(answer);
  expect(Object.keys(body).sort()).toEqual(
    ['durationMs', 'exitCode', 'folder', 'ok', 'operationId', 'stderr', 'stdout', 'timedOut', 'truncated'].sort(),
  );
  expect(body).toMatchObject({ folder: 'repos/group__rich', exitCode: 0, timedOut: false, truncated: false });
  expect(answer.headers['operation-id']).toBe(body.operationId);

  const git = (...args: string[]) => scene.git(user, 'repos/group__rich', ...args);
  expect(await git('rev-list', '--all')).toBe(tip);
  expect(await git('for-each-ref', '--format=%(refname)')).not.toMatch(/tags|other/);
  expect(await git('rev-parse', 'refs/heads/main', 'refs/remotes/origin/main')).toBe(`${tip}\n${tip}`);
  expect(await git('symbolic-ref', 'HEAD')).toBe('refs/heads/main');
  expect(await git('status', '--porcelain')).toBe('');
  const folder = join(homeOf(scene.service, user), 'repos/group__rich');
  expect(readFileSync(join(folder, 'a.txt'), 'utf8')).toBe('new\n');
  expect(readFileSync(join(folder, 'large.bin'), 'utf8')).toBe(lfsPointer);
  expect(existsSync(join(folder, 'sub/.git'))).toBe(false);
  for (const absent of ['.git/modules', '.git/lfs', '.git/hooks/pre-push', '.git/hooks/post-checkout'])
    expect(existsSync(join(folder, absent)), absent).toBe(false);
  expect(await scene.sh(user, 'repos/group__rich', 'find .git/hooks -type f 2>/dev/null || :')).toBe('');
  expect(await scene.sh(user, 'repos/group__rich', 'find . ! -user "$(id -u)" -o -perm /077 ! -type l')).toBe('');

  const seen = scene.server.seen.slice(asked);
  expect(seen.length).toBeGreaterThanOrEqual(3);
  for (const { path } of seen) expect(path).toMatch(/^\/group\/rich\.git\/(info\/refs|git-upload-pack)/);
  expect(scene.counting.reached).toEqual(unreached);
  expect(scene.leftIn(user)).toEqual(clean('group__rich'));
});

test('its configuration has the URL, what git needs, and nothing secret', async () => {
  const user = next++;
  const { project } = await scene.cloned(user);
  const text = readFileSync(scene.at(user, `repos/${project}/.git/config`), 'utf8');
  expect(text).not.toContain(scene.server.token);
  expect(text).not.toContain('@');
  const configured = (await scene.git(user, `repos/${project}`, 'config', '--local', '--list')).split('\n');
  expect(configured).toContain(`remote.origin.url=${scene.server.url(`${project.replace('__', '/')}.git`)}`);
  expect(configured).toContain('remote.origin.fetch=+refs/heads/main:refs/remotes/origin/main');
  for (const line of configured) expect(line).toMatch(/^(core|remote\.origin|branch\.main|extensions)\./);
});

test('deeper groups join; a path without .git is the same repository, without a redirect', async () => {
  const user = next++;
  const tip = scene.server.repository('a/b/c').commit('main', { 'a.txt': 'a\n' });
  const asked = scene.server.seen.length;
  expect(done(await clone(user, scene.server.url('a/b/c')))).toMatchObject({ folder: 'repos/a__b__c' });
  expect(await scene.git(user, 'repos/a__b__c', 'rev-parse', 'HEAD')).toBe(tip);
  for (const { path } of scene.server.seen.slice(asked)) expect(path).toMatch(/^\/a\/b\/c\.git\//);
  expect(refusal(await clone(user, scene.server.url('a/b/c.git')))).toEqual([409, 'exists']);
});

test('a public repository needs no password; one with another name for its branch comes with that', async () => {
  const user = next++;
  const repository = scene.server.repository('group/public', 'public');
  repository.git('symbolic-ref', 'HEAD', 'refs/heads/trunk');
  repository.commit('main', { 'a.txt': 'a\n' });
  const tip = repository.commit('trunk', { 'a.txt': 'a\n' });
  done(await clone(user, scene.server.url('group/public.git'), [`GIT_SSL_CAINFO=${scene.server.certificate}`]));
  expect(await scene.git(user, 'repos/group__public', 'rev-parse', 'refs/heads/trunk')).toBe(tip);
});

test('what is there already stays: a clone, a file, an empty folder, a link to nowhere; git is not even asked', async () => {
  const user = next++;
  const { project } = await scene.cloned(user);
  await scene.sh(user, `repos/${project}`, 'echo changed >README.md');
  await scene.sh(user, 'repos', 'echo f >g__file; mkdir g__folder; ln -s nowhere g__link');
  const asked = scene.server.seen.length;
  for (const path of [project.replace('__', '/'), 'g/file', 'g/folder', 'g/link'])
    expect(refusal(await clone(user, scene.server.url(`${path}.git`))), path).toEqual([409, 'exists']);
  expect(scene.server.seen).toHaveLength(asked);
  const kept = await scene.sh(user, 'repos', `cat ${project}/README.md g__file; ls g__folder; readlink g__link`);
  expect(kept).toBe('changed\nf\nnowhere');
});

test.each([
  ['no such repository', () => ['group/none', scene.server.env()], /not found/],
  ['a wrong password', () => ['group/there', scene.server.env('wrong')], /Authentication failed/],
  [
    'no password',
    () => ['group/there', [`GIT_SSL_CAINFO=${scene.server.certificate}`]],
    /terminal prompts disabled|could not read Username/,
  ],
  ['an unknown certificate', () => ['group/there', scene.server.env().slice(0, 2)], /certificate/],
  [
    'an askpass program that is not there',
    () => ['group/there', ['GIT_ASKPASS=/nonexistent', ...scene.server.env().slice(1)]],
    /could not read|cannot run|cannot exec/,
  ],
] as const)('%s: git’s own words, nothing left, and it can be repeated', async (what, given, words) => {
  const user = next++;
  const name = what.replaceAll(' ', '-');
  scene.server.repository(`there/${name}`).commit('main', { 'a.txt': 'a\n' });
  const [path, env] = given() as [string, string[]];
  const url = scene.server.url(`${path.replace('group/there', `there/${name}`)}.git`);
  const body = failed(await clone(user, url, env));
  expect(body).toMatchObject({
    exitCode: 128,
    timedOut: false,
    folder: `repos/${path.replace('group/there', `there__${name}`).replace('/', '__')}`,
  });
  expect(body.stderr).toMatch(words);
  expect(scene.leftIn(user)).toEqual(clean());
  const line = await scene.service.audited(({ operationId }) => operationId === body.operationId);
  expect(line).toMatchObject({ action: 'repo.clone', user, exit: 128, status: 'ok' });
  done(await clone(user, scene.server.url(`there/${name}.git`)));
  expect(scene.leftIn(user)).toEqual(clean(`there__${name}`));
});

test('a server that breaks off in the middle of the objects: nothing left, and it can be repeated', async () => {
  const user = next++;
  const { path, project } = scene.repository();
  const url = scene.server.url(`${path}.git`);
  scene.server.route(`/${path}.git/git-upload-pack`, (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/x-git-upload-pack-result' });
    response.write('0');
    response.destroy();
  });
  failed(await clone(user, url));
  expect(scene.leftIn(user)).toEqual(clean());
  scene.server.unroute(`/${path}.git/git-upload-pack`);
  done(await clone(user, url));
  expect(scene.leftIn(user)).toEqual(clean(project));
});

test('without allowed hosts every clone is refused', async () => {
  const none = await GitScene.start({ RUNNER_ALLOWED_GIT_HOSTS: '' });
  try {
    const answer = await none.ask('clone', { user: next++, url: none.server.url('group/project.git') });
    expect(refusal(answer)).toEqual([403, 'host_not_allowed']);
    expect(none.server.seen).toEqual([]);
  } finally {
    await none.stop();
  }
});
