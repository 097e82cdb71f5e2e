import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { gitEnvironment } from '../../../worker/git/environment.ts';
import { GitServer } from '../../support/git-server.ts';

let server: GitServer;
let space: string;

beforeAll(async () => {
  server = await GitServer.start();
  server.repository('group/project').commit('main', { 'README.md': 'first\n' });
  space = mkdtempSync('/tmp/runner-test-space-');
  mkdirSync(join(space, 'tmp/.git-workflow/home'), { recursive: true });
});
afterAll(async () => {
  await server.stop();
  rmSync(space, { recursive: true });
});

/** The system's authorities that a git on the network opens in this environment; it must get what it asks for. */
const opened = async (entries: readonly string[]): Promise<string[]> => {
  const log = join(space, 'opened');
  const git = ['git', 'ls-remote', server.url('group/project.git')];
  const env = Object.fromEntries(entries.map((entry) => entry.split(/=(.*)/s) as [string, string]));
  const command = ['-f', '-qq', '-o', log, '-e', 'trace=openat', ...git];
  const { stdout } = await promisify(execFile)('strace', command, { env });
  expect(stdout).toContain('refs/heads/main');
  return readFileSync(log, 'utf8')
    .split('\n')
    .filter((line) => line.includes('"/etc/ssl/certs'));
};

test('where a request names an authority, git opens none of the system’s', async () => {
  const entries = gitEnvironment(space, 'https', server.env());
  expect(await opened(entries)).toEqual([]);
  const without = entries.filter((entry) => !entry.startsWith('GIT_SSL_CAPATH='));
  expect(await opened(without), 'a git that is told nothing of it opens them').not.toEqual([]);
});
