import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Service } from '../../support/service.ts';
import { homeOf, spaceOf, systemTools, uidOf } from '../../support/user.ts';

const [ada, bob] = [100_000, 100_001] as const;
let service: Service;

beforeAll(async () => {
  service = await Service.start({ settings: systemTools('sh') });
});
afterAll(() => service.stop());

/** Runs git and expects it to succeed. */
const git = async (user: number, args: readonly string[], more: Readonly<Record<string, unknown>> = {}) => {
  const { status, body } = await service.exec(user, 'git', args, more);
  expect(status, JSON.stringify(body)).toBe(200);
  expect(body.exitCode, body.stderr).toBe(0);
  return body;
};

const write = async (user: number, path: string, content: string): Promise<void> => {
  const { body } = await service.exec(user, 'sh', ['-c', 'printf %s "$2" >"$1"', 'sh', path, content]);
  expect(body.exitCode, body.stderr).toBe(0);
};

/** One person's whole way from an empty home to a commit. */
const workOf = async (user: number, name: string): Promise<void> => {
  await git(user, ['init', '-b', 'main', 'project']);
  await write(user, 'project/notes.txt', `notes of ${name}`);
  expect((await git(user, ['status', '--porcelain'], { dir: 'project' })).stdout).toBe('?? notes.txt\n');
  await git(user, ['add', 'notes.txt'], { dir: 'project' });
  const env = ['AUTHOR', 'COMMITTER'].flatMap((role) => [
    `GIT_${role}_NAME=${name}`,
    `GIT_${role}_EMAIL=${name}@example.invalid`,
  ]);
  await git(user, ['commit', '-m', `first of ${name}`], { dir: 'project', env });
  expect((await git(user, ['status', '--porcelain'], { dir: 'project' })).stdout).toBe('');
};

test('two people init, add, commit, and read status and log at the same time, each in their own home', async () => {
  await Promise.all([workOf(ada, 'ada'), workOf(bob, 'bob')]);
  for (const [user, name] of [
    [ada, 'ada'],
    [bob, 'bob'],
  ] as const) {
    const log = await git(user, ['log', '--format=%an <%ae> %s'], { dir: 'project' });
    expect(log.stdout).toBe(`${name} <${name}@example.invalid> first of ${name}\n`);
    const shown = await git(user, ['show', 'HEAD:notes.txt'], { dir: 'project' });
    expect(shown.stdout).toBe(`notes of ${name}`);
  }
});

test('a name can be given by options too', async () => {
  await git(ada, ['init', 'second']);
  const identity = ['-c', 'user.name=Ada Option', '-c', 'user.email=ada@example.invalid'];
  await git(ada, [...identity, 'commit', '--allow-empty', '-m', 'empty'], { dir: 'second' });
  expect((await git(ada, ['log', '--format=%an'], { dir: 'second' })).stdout).toBe('Ada Option\n');
});

test('git fails as git does: its own exit code and its own words, and the answer is still 200', async () => {
  expect(existsSync(join(homeOf(service, bob), '.git'))).toBe(false);
  const { status, body } = await service.exec(bob, 'git', ['status']);
  expect(status).toBe(200);
  expect(body).toMatchObject({ exitCode: 128, stdout: '', signal: null, truncated: false, timedOut: false });
  expect(body.stderr).toContain('not a git repository');
});

test('git run for one person finds nothing of the other, by any path', async () => {
  const secret = join(homeOf(service, bob), 'project');
  expect(existsSync(join(secret, '.git', 'HEAD'))).toBe(true);
  for (const args of [
    ['-C', secret, 'log'],
    [`--git-dir=${secret}/.git`, 'log'],
    ['clone', secret, 'stolen'],
    ['hash-object', `${secret}/notes.txt`],
  ]) {
    const { body } = await service.exec(ada, 'git', args);
    expect(body.exitCode, args.join(' ')).not.toBe(0);
    expect(`${body.stdout}${body.stderr}`).not.toContain('of bob');
  }
  expect(existsSync(join(homeOf(service, ada), 'stolen'))).toBe(false);
  // The same on one's own: it is not the commands that fail.
  const own = await service.exec(bob, 'git', ['clone', secret, 'copy']);
  expect(own.body.exitCode, own.body.stderr).toBe(0);
});

test('spaces are named by uid', () => {
  expect(spaceOf(service, ada).endsWith(`/u${uidOf(ada)}`)).toBe(true);
  expect(existsSync(spaceOf(service, ada))).toBe(true);
});
