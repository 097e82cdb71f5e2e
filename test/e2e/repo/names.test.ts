import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { failed, GitScene, type RepoRoute, type Work } from '../../support/git-scene.ts';
import { expectRefused, fieldsFor, repoRoutes } from '../../support/repo-requests.ts';
import { systemTools } from '../../support/user.ts';

const user = 619_000;
let scene: GitScene;
let work: Work;

beforeAll(async () => {
  scene = await GitScene.start(systemTools('sh'));
  work = await scene.prepared(user);
  await scene.commit(work);
});
afterAll(() => scene.stop());

const fieldsOf = (route: RepoRoute) => fieldsFor(scene, work, route);
const refused = (routes: readonly RepoRoute[], more: Readonly<Record<string, unknown>>, code: string) =>
  expectRefused(scene, work, routes, more, code);
const named = repoRoutes.slice(1);

describe('names', () => {
  it.each(
    [
      '',
      '.',
      '..',
      '../x',
      'a/b',
      'a\\b',
      '.git',
      '.hidden',
      '-x',
      '--upload-pack=x',
      'a..b',
      'a b',
      'a\n',
      'a\0',
      'ä',
      'a:b',
      '~',
      '$HOME',
      'a%2fb',
      'x'.repeat(256),
    ].map((project) => [project]),
  )('project %j: bad_name', (project) => refused(named, { project }, 'bad_name'));

  const uuid = '01234567-89ab-4def-8123-456789abcdef';
  it.each(
    [
      '',
      uuid.toUpperCase(),
      uuid.replaceAll('-', ''),
      `{${uuid}}`,
      ` ${uuid}`,
      `${uuid} `,
      `${uuid}\n`,
      `${uuid}\0`,
      `${uuid}x`,
      uuid.slice(1),
      `../${uuid}`,
      `${uuid}/../x`,
      uuid.replace('0', 'g'),
      'main',
      'agent-x',
      '--mirror',
    ].map((id) => [id]),
  )('conversation or id %j: bad_name', async (id) => {
    await refused(['worktree', 'push'], { conversation: id }, 'bad_name');
    await refused(['agent-worktree', 'agent-push'], { id }, 'bad_name');
  });

  it.each(
    [
      '',
      '-',
      '-x',
      '--upload-pack=touch x',
      '@',
      'HEAD',
      '.',
      '..',
      '/',
      '/a',
      'a/',
      'a//b',
      'a..b',
      '.a',
      'a/.b',
      'a.',
      'a.lock',
      'a.lock/b',
      'a b',
      'a\tb',
      'a\n',
      'a\0',
      'a\u007f',
      'a~1',
      'a^',
      'a:b',
      '+a:refs/heads/b',
      'a?',
      'a*',
      'refs/heads/*',
      'a[',
      'a\\b',
      'a@{1}',
      '@{-1}',
      'x'.repeat(300),
    ].map((branch) => [branch]),
  )('baseBranch %j: bad_name', (baseBranch) => refused(['worktree', 'agent-worktree'], { baseBranch }, 'bad_name'));

  it('that look odd and are names are looked for, and not there', async () => {
    for (const baseBranch of [
      '+main',
      "a'b",
      'a"b',
      'a$(id)',
      'a;b',
      'a|b',
      'ä',
      'a@b',
      'main.x',
      'a-',
      'a{b}',
      '%',
      '!x',
    ]) {
      const { project } = work;
      const made = await scene.ask('worktree', { user, project, conversation: randomUUID(), baseBranch });
      expect(failed(made).stderr, baseBranch).toMatch(/find remote ref/);
    }
  });
});

describe('fields', () => {
  it('that are missing, of another type, or not known: bad_request', async () => {
    for (const route of repoRoutes) {
      const fields = fieldsOf(route);
      for (const name of Object.keys(fields)) {
        await refused([route], { [name]: undefined }, 'bad_request');
        await refused([route], { [name]: null }, 'bad_request');
        await refused([route], { [name]: ['x'] }, 'bad_request');
        if (name !== 'user') await refused([route], { [name]: 7 }, 'bad_request');
      }
    }
    for (const more of [
      { user: -1 },
      { user: 1.5 },
      { user: 1_000_001 },
      { user: '7' },
      { force: true },
      { args: [] },
      { depth: 1 },
      { branch: 'main' },
      { remote: 'x' },
      { dir: 'x' },
    ])
      await refused(repoRoutes, more, 'bad_request');
    for (const env of ['A=x', [1], ['A'], ['1A=x'], ['A=x\0y'], Array.from({ length: 129 }, (_, at) => `V${at}=`)])
      await refused(repoRoutes, { env }, 'bad_request');
  });
});
