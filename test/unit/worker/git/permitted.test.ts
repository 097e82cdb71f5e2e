import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Refusal } from '../../../../protocol/errors.ts';
import { readConfig } from '../../../../worker/config.ts';
import { checkBranch, checkEnvironment, permittedUrl } from '../../../../worker/git/permitted.ts';

const outcome = (act: () => unknown): string => {
  try {
    act();
    return 'taken';
  } catch (error) {
    if (error instanceof Refusal) return error.code;
    throw error;
  }
};

describe('a URL', () => {
  const config = readConfig({ RUNNER_ALLOWED_GIT_HOSTS: 'Git.Example,other.example:8443,[::1]:8443,10.0.0.1:443' });
  it.each([
    'https://git.example/a/b',
    'https://git.example:443/a/b.git',
    'https://other.example:8443/a/b',
    'https://[::1]:8443/a/b',
    'https://10.0.0.1/a/b',
  ])('%s is permitted, and the parser of browsers reads it so', (url) => {
    const { href, host } = permittedUrl(url, config);
    expect(new URL(href).protocol).toBe('https:');
    expect(new URL(href).host).toBe(host);
    expect(new URL(href).pathname).toBe('/a/b.git');
  });

  it.each([
    ...[
      'http://git.example/a/b',
      'ssh://git.example/a/b',
      'git://git.example/a/b',
      'file:///a/b',
      'ftp://git.example/a/b',
    ],
    ...['HTTPS://git.example/a/b', 'https://GIT.example/a/b', 'https://Git.Example/a/b', 'https://git.example./a/b'],
    ...[
      'https://git.example:444/a/b',
      'https://git.example:0443/a/b',
      'https://git.example:/a/b',
      'https://git.example:443:443/a/b',
    ],
    ...['https://other.example/a/b', 'https://other.example:443/a/b', 'https://other.example:84430/a/b'],
    ...[
      'https://evil.example/a/b',
      'https://git.example.evil.example/a/b',
      'https://xgit.example/a/b',
      'https://git/a/b',
    ],
    ...[
      'https://127.0.0.1/a/b',
      'https://localhost/a/b',
      'https://169.254.169.254/a/b',
      'https://[::1]/a/b',
      'https://::1/a/b',
    ],
    ...[
      'https://[::ffff:10.0.0.1]/a/b',
      'https://[0:0:0:0:0:0:0:1]:8443/a/b',
      'https://10.1/a/b',
      'https://0xa000001/a/b',
    ],
    ...['https:///a/b', 'https://git.example@evil.example/a/b', 'https://git.example/a', '', 'not a url'],
  ])('%j is not', (url) => {
    expect(outcome(() => permittedUrl(url, config))).toBe('host_not_allowed');
  });

  it('is never permitted where no host is named', () => {
    for (const url of ['https://git.example/a/b', 'https:///a/b', 'https://:443/a/b'])
      expect(outcome(() => permittedUrl(url, readConfig({})))).toBe('host_not_allowed');
  });
});

describe('the branch of a worktree', () => {
  const id = '0f8fad5b-d9cb-469f-a165-70867728950e';
  const own = `chat/${id}`;
  const config = readConfig({});
  it.each([
    [`refs/heads/${own}`, 'taken'],
    ['refs/heads/main', 'protected_branch'],
    ['refs/heads/master', 'protected_branch'],
    ['refs/heads/develop', 'protected_branch'],
    ['refs/heads/release/1.2', 'protected_branch'],
    ['refs/heads/release/', 'protected_branch'],
    ['refs/heads/release/a/b', 'protected_branch'],
    ['refs/heads/release', 'wrong_branch'],
    ['refs/heads/releases/1', 'wrong_branch'],
    ['refs/heads/mainx', 'wrong_branch'],
    ['refs/heads/Main', 'wrong_branch'],
    ['refs/heads/other', 'wrong_branch'],
    ['refs/heads/chat/11111111-d9cb-469f-a165-70867728950e', 'wrong_branch'],
    [`refs/heads/agent-id/${id}`, 'wrong_branch'],
    [`refs/heads/${own}x`, 'wrong_branch'],
    [`refs/heads/${own}/x`, 'wrong_branch'],
    [`refs/heads/${own}\n`, 'wrong_branch'],
    [`refs/heads/x\nrefs/heads/${own}`, 'wrong_branch'],
    [`refs/heads/${own.toUpperCase()}`, 'wrong_branch'],
    ['refs/heads/--mirror', 'wrong_branch'],
    ['refs/heads/', 'wrong_branch'],
    [`refs/tags/${own}`, 'wrong_branch'],
    ['refs/tags/main', 'wrong_branch'],
    [`refs/remotes/origin/${own}`, 'wrong_branch'],
    [own, 'wrong_branch'],
    [`x/refs/heads/${own}`, 'wrong_branch'],
    ['', 'wrong_branch'],
    [undefined, 'wrong_branch'],
  ])('on %j: %s', (ref, expected) => {
    expect(outcome(() => checkBranch(ref, own, config))).toBe(expected);
  });

  it('is protected as the operator says', () => {
    const others = readConfig({ RUNNER_PROTECTED_BRANCHES: `trunk,chat/*` });
    expect(outcome(() => checkBranch('refs/heads/main', own, others))).toBe('wrong_branch');
    expect(outcome(() => checkBranch('refs/heads/trunk', own, others))).toBe('protected_branch');
    expect(outcome(() => checkBranch(`refs/heads/${own}`, own, others))).toBe('protected_branch');
  });
});

describe('the environment', () => {
  let folder = '';
  let config = readConfig({});
  const at = (...names: readonly string[]): string => join(folder, ...names);
  beforeAll(() => {
    folder = realpathSync(mkdtempSync(join(tmpdir(), 'permitted-')));
    mkdirSync(at('real-work', 'u20007', 'home'), { recursive: true });
    mkdirSync(at('real-worker'));
    writeFileSync(at('real-work', 'u20007', 'home', 'program'), '');
    writeFileSync(at('program'), '');
    symlinkSync('real-work', at('work'));
    symlinkSync('program', at('link'));
    symlinkSync('real-work/u20007/home/program', at('link-to-home'));
    symlinkSync('real-work/u20007/home', at('folder'));
    symlinkSync('loop', at('loop'));
    config = readConfig({ RUNNER_WORK_DIR: at('work') });
  });
  afterAll(() => rmSync(folder, { recursive: true }));
  const check = (entry: string): string => outcome(() => checkEnvironment(['A=b', entry, 'C='], config));

  it('may name what is elsewhere', () => {
    for (const path of ['program', 'link', 'missing', 'real-worker', 'real-work-x'].map((name) => at(name)))
      for (const key of ['GIT_ASKPASS', 'GIT_SSL_CAINFO', 'X']) expect(check(`${key}=${path}`), path).toBe('taken');
    for (const entry of ['X=', 'X=y', 'X=work/u20007', `X=x${at('work')}`, 'X=https://h/work', 'GITLAB_TOKEN=a:/b'])
      expect(check(entry), entry).toBe('taken');
  });

  it('never leads into the work dir, by whatever name', () => {
    const ways = [
      at('work'),
      at('work', 'u20007', 'home', 'program'),
      at('work', 'missing'),
      at('real-work', 'u20007', 'home', 'program'),
      `/${at('work', 'x')}`,
      `//${at('work')}//x`,
      `${at()}/./work/./x`,
      `${at()}/other/../work/x`,
    ];
    for (const way of ways)
      for (const key of ['GIT_ASKPASS', 'GIT_SSL_CAINFO', 'X', 'TMPDIR'])
        expect(check(`${key}=${way}`), way).toBe('bad_env');
  });

  it('never leads there in a list of paths', () => {
    expect(check(`X=/usr/lib:${at('work', 'x')}`)).toBe('bad_env');
    expect(check(`X=:${at('real-work')}:/usr`)).toBe('bad_env');
    expect(check(`X=/usr/lib:/lib`)).toBe('taken');
  });

  it('never leads there by a link, in what git follows', () => {
    for (const key of ['GIT_ASKPASS', 'GIT_SSL_CAINFO'])
      for (const way of [at('link-to-home'), at('folder', 'program'), at('folder')])
        expect(check(`${key}=${way}`), `${key} ${way}`).toBe('bad_env');
  });

  it('never names what is elsewhere for git than for the worker', () => {
    for (const path of ['/proc/self/cwd/evil', '//proc/./thread-self/cwd/evil', '/dev/fd/3', '/proc'])
      for (const key of ['GIT_ASKPASS', 'GIT_SSL_CAINFO']) expect(check(`${key}=${path}`), path).toBe('bad_env');
    expect(check('GIT_ASKPASS=/procedure/askpass')).toBe('taken');
  });

  it('never names what can’t be resolved', () => {
    for (const way of [at('loop'), at('program', 'x')]) expect(check(`GIT_ASKPASS=${way}`), way).toBe('bad_env');
  });
});
