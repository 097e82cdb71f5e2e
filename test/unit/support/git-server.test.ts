import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { plainGitEnvironment } from '../../support/bare-repository.ts';
import { CountingServer, unreached } from '../../support/counting-server.ts';
import { GitServer } from '../../support/git-server.ts';

// Programs are started: on a busy machine that takes long, and is no failure.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const run = promisify(execFile);
let server: GitServer;
let counting: CountingServer;
let folder: string;

beforeAll(async () => {
  server = await GitServer.start();
  counting = await CountingServer.start();
  folder = mkdtempSync('/tmp/runner-git-client-');
});
afterAll(async () => {
  await server.stop();
  await counting.stop();
  rmSync(folder, { recursive: true });
});

/** The tests' own git, which runs beside the server: never the blocking kind. */
const git = async (args: readonly string[], token?: string): Promise<string> => {
  const given = Object.fromEntries(server.env(token).map((entry) => entry.split('=') as [string, string]));
  return (await run('git', args, { cwd: folder, env: { ...plainGitEnvironment, ...given } })).stdout;
};

test('a private repository is cloned with the password, by protocol 2, and not without it', async () => {
  const repository = server.repository('group/private');
  repository.commit('main', { 'a.txt': 'a' });
  const tip = repository.commit('main', { 'b.txt': 'b' });
  await git(['clone', '--quiet', '--depth', '1', server.url('group/private.git'), 'clone']);
  expect(readdirSync(join(folder, 'clone')).sort()).toEqual(['.git', 'a.txt', 'b.txt']);
  expect(await git(['-C', 'clone', 'rev-list', '--all'])).toBe(`${tip}\n`);
  expect(server.seen.map(({ credentials }) => credentials)).toEqual(['none', 'right', 'right', 'right']);
  expect(server.seen[0]).toMatchObject({ method: 'GET', path: '/group/private.git/info/refs?service=git-upload-pack' });
  expect(server.seen[3]).toMatchObject({ method: 'POST', path: '/group/private.git/git-upload-pack' });
  await expect(git(['clone', server.url('group/private.git'), 'wrong'], 'wrong')).rejects.toThrow('Authentication');
  expect(server.seen.at(-1)?.credentials).toBe('wrong');
});

test('a public one needs none; what is not there is 404', async () => {
  server.repository('group/public', 'public').commit('main', { 'a.txt': 'a' });
  await git(['clone', '--quiet', server.url('group/public.git'), 'public'], 'wrong');
  await expect(git(['clone', server.url('group/none.git'), 'none'])).rejects.toThrow('not found');
});

test('a push is recorded, with its options; a large one comes packed and in pieces', async () => {
  const repository = server.repository('group/pushed');
  const old = repository.commit('main', { 'a.txt': 'a' });
  await git(['clone', '--quiet', server.url('group/pushed.git'), 'pushed']);
  const identity = ['-c', 'user.name=T', '-c', 'user.email=t@example.invalid'];
  await git(['-C', 'pushed', ...identity, 'commit', '--quiet', '--allow-empty', '-m', 'more']);
  const [tip] = (await git(['-C', 'pushed', 'rev-parse', 'HEAD'])).split('\n');
  const small = ['-c', 'http.postBuffer=100'];
  await git(['-C', 'pushed', ...small, 'push', '--quiet', '-o', 'x', 'origin', 'HEAD:main', 'HEAD:refs/heads/new']);
  expect(repository.refs()).toEqual({ 'refs/heads/main': tip, 'refs/heads/new': tip });
  expect([...repository.pushed()].sort()).toEqual([
    `refs/heads/main ${old} ${tip} options=1`,
    `refs/heads/new ${'0'.repeat(40)} ${tip} options=1`,
  ]);
});

test('what is held waits until it is released', async () => {
  server.repository('group/held').commit('main', { 'a.txt': 'a' });
  for (const point of ['before', 'done', 'half'] as const) {
    const hold = server.hold(({ method }) => method === 'POST', point);
    let over = false;
    const cloned = git(['clone', '--quiet', server.url('group/held.git'), `held-${point}`]).finally(() => {
      over = true;
    });
    await hold.reached;
    expect(over).toBe(false);
    hold.release();
    await cloned;
    expect(hold.count).toBe(1);
  }
});

test('a redirect to the counting server is followed by a git that may, and counted', async () => {
  server.redirect('/moved/', `https://127.0.0.1:${counting.port}/`);
  expect(counting.reached).toEqual(unreached);
  await expect(git(['ls-remote', server.url('moved/project.git')])).rejects.toThrow();
  expect(counting.reached.connections).toBeGreaterThan(0);
  expect(counting.reached.bytes).toBeGreaterThan(0);
  counting.forget();
  await expect(git(['-c', 'http.followRedirects=false', 'ls-remote', server.url('moved/p.git')])).rejects.toThrow();
  expect(counting.reached).toEqual(unreached);
});
