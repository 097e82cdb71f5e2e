import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { plainGitEnvironment } from '../../support/bare-repository.ts';
import { unreached } from '../../support/counting-server.ts';
import { gitHttpBackend } from '../../support/git-http-backend.ts';
import { clean, done, failed, GitScene } from '../../support/git-scene.ts';

let scene: GitScene;
let folder: string;
let next = 613_000;

beforeAll(async () => {
  scene = await GitScene.start();
  folder = mkdtempSync('/tmp/runner-git-client-');
});
afterAll(async () => {
  await scene.stop();
  rmSync(folder, { recursive: true });
});

/** Shows that a git that is told nothing goes there; then all is forgotten. */
const reachedByPlainGit = async (...args: readonly string[]): Promise<void> => {
  const given = Object.fromEntries(scene.server.plainEnv().map((entry) => entry.split('=') as [string, string]));
  const options = { cwd: folder, env: { ...plainGitEnvironment, ...given } };
  await promisify(execFile)('git', args, options).catch(() => undefined);
  expect(scene.counting.reached.connections, args.join(' ')).toBeGreaterThan(0);
  scene.counting.forget();
};

const clone = (user: number, path: string) => scene.ask('clone', { user, url: scene.server.url(path) });

test.each([301, 302, 303, 307, 308])('a redirect (%i) from the allowed host is not followed', async (status) => {
  for (const [what, target] of [
    ['elsewhere', `https://127.0.0.1:${scene.counting.port}/`],
    ['plain', `http://127.0.0.1:${scene.counting.port}/`],
  ] as const) {
    const user = next++;
    scene.server.redirect(`/${what}${status}/`, target, status);
    await reachedByPlainGit(
      '-c',
      'http.followRedirects=true',
      'ls-remote',
      scene.server.url(`${what}${status}/project.git`),
    );
    failed(await clone(user, `${what}${status}/project.git`));
    expect(scene.counting.reached, what).toEqual(unreached);
    expect(scene.leftIn(user)).toEqual(clean());
  }
});

test('nor one within the host, nor one that comes with the second question', async () => {
  const user = next++;
  const { path } = scene.repository();
  scene.server.redirect('/alias/', `/${path.split('/')[0]}/`);
  failed(await clone(user, `alias/${path.split('/')[1]}.git`));
  scene.server.redirect(`/${path}.git/git-upload-pack`, `https://127.0.0.1:${scene.counting.port}/x`, 307);
  failed(await clone(user, `${path}.git`));
  expect(scene.counting.reached).toEqual(unreached);
  expect(scene.leftIn(user)).toEqual(clean());
});

test('worktree and push don’t follow one either', async () => {
  const work = await scene.prepared(next++);
  await scene.commit(work);
  const path = `/${work.project.replace('__', '/')}.git/`;
  scene.server.redirect(path, `https://127.0.0.1:${scene.counting.port}/`);
  failed(await scene.push(work));
  failed(await scene.worktree({ ...work, conversation: '00000000-0000-4000-8000-000000000000' }));
  expect(scene.counting.reached).toEqual(unreached);
  scene.server.unroute(path);
  done(await scene.push(work));
});

test('a server without a git of its own that names alternates elsewhere: they are not asked', async () => {
  const user = next++;
  const { repository, path } = scene.repository();
  repository.git('repack', '-ad', '--quiet');
  repository.git('update-server-info');
  const alternates = `http://127.0.0.1:${scene.counting.port}/group/project.git/objects\n`;
  // Refs and no objects at all: whoever wants them has to look into the alternates.
  scene.server.route(`/${path}.git/`, (incoming, response) => {
    const name = (incoming.url ?? '').slice(`/${path}.git/`.length).replace(/\?.*/, '');
    if (name === 'objects/info/http-alternates' || name === 'objects/info/alternates') response.end(alternates);
    else if (name === 'info/refs' || name === 'HEAD') response.end(readFileSync(join(repository.folder, name)));
    else response.writeHead(404).end();
  });
  await reachedByPlainGit('-c', 'http.followRedirects=true', 'clone', scene.server.url(`${path}.git`), 'dumb');
  const asked = scene.server.seen.length;
  failed(await clone(user, `${path}.git`));
  expect(scene.server.seen.length).toBeGreaterThan(asked);
  expect(scene.counting.reached).toEqual(unreached);
  expect(scene.leftIn(user)).toEqual(clean());
});

/** One line of git's protocol. */
const packet = (text: string): string => `${(text.length + 5).toString(16).padStart(4, '0')}${text}\n`;

test('a server that offers bundles elsewhere: they are not fetched', async () => {
  const user = next++;
  const { path } = scene.repository();
  const bundles = ['bundle.version=1', 'bundle.mode=all', `bundle.one.uri=http://127.0.0.1:${scene.counting.port}/b`];
  let asked = 0;
  scene.server.route(`/${path}.git/`, async (incoming, response) => {
    const { status, headers, body } = await gitHttpBackend(join(scene.server.folder, 'repositories'), incoming);
    const text = body.toString('latin1');
    const offered = text.includes('version 2') ? `${text.slice(0, -4)}${packet('bundle-uri')}0000` : text;
    response.writeHead(status, headers);
    response.end(incoming.method === 'GET' ? Buffer.from(offered, 'latin1') : body);
  });
  scene.server.route(`/${path}.git/bundles`, (_incoming, response) => {
    asked += 1;
    response.end(bundles.map(packet).join(''));
  });
  const offer = await new Promise<string>((resolve, reject) => {
    const url = scene.server.url(`${path}.git/info/refs?service=git-upload-pack`);
    const headers = { 'git-protocol': 'version=2' };
    const sent = request(url, { ca: readFileSync(scene.server.certificate), headers }, (response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => {
        text += chunk.toString('latin1');
      });
      response.on('end', () => resolve(text));
    });
    sent.on('error', reject).end();
  });
  expect(offer).toContain('bundle-uri');
  done(await clone(user, `${path}.git`));
  expect([scene.counting.reached, asked]).toEqual([unreached, 0]);
});

test('a submodule’s URL is asked by neither clone nor worktree nor push', async () => {
  const user = next++;
  const { repository, path } = scene.repository();
  const elsewhere = `https://127.0.0.1:${scene.counting.port}/group/sub.git`;
  repository.commit('main', {
    '.gitmodules': `[submodule "sub"]\n\tpath = sub\n\turl = ${elsewhere}\n`,
    sub: { submodule: repository.tip('main') },
  });
  await reachedByPlainGit('clone', '--recurse-submodules', scene.server.url(`${path}.git`), 'with-submodules');
  done(await clone(user, `${path}.git`));
  const project = path.replace('/', '__');
  const conversation = '11111111-1111-4111-8111-111111111111';
  // Made known to the clone itself, with the wish to recurse.
  await scene.git(user, `repos/${project}`, 'config', 'submodule.sub.url', elsewhere);
  await scene.git(user, `repos/${project}`, 'config', 'submodule.sub.active', 'true');
  for (const name of ['submodule.recurse', 'fetch.recurseSubmodules', 'push.recurseSubmodules'])
    await scene.git(user, `repos/${project}`, 'config', name, name.startsWith('push') ? 'on-demand' : 'true');
  done(await scene.ask('worktree', { user, project, conversation, baseBranch: 'main' }));
  await scene.commit({ user, folder: `work/${conversation}/${project}` });
  done(await scene.ask('push', { user, project, conversation }));
  expect(scene.counting.reached).toEqual(unreached);
});
