import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, lstatSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Service, token } from '../../support/service.ts';
import { homeOf, systemTools, uidOf } from '../../support/user.ts';

const user = 100_100;
const uid = uidOf(user);
const limits = { RUNNER_MAX_PROCESSES: '40', RUNNER_MAX_FILE_BYTES: '7000000' };
let setuidFolder: string;
let setuidId: string;
let service: Service;

beforeAll(async () => {
  // A program that makes whoever starts it root, where the kernel lets it.
  setuidFolder = mkdtempSync('/tmp/runner-setuid-');
  setuidId = join(setuidFolder, 'id');
  chmodSync(setuidFolder, 0o755);
  copyFileSync('/usr/bin/id', setuidId);
  chmodSync(setuidId, 0o4755);
  const { RUNNER_TOOLS } = systemTools('sh', 'cat', 'env', 'ls', 'readlink', 'prlimit');
  service = await Service.start({ settings: { ...limits, RUNNER_TOOLS: `${RUNNER_TOOLS},setuid-id=${setuidId}` } });
});
afterAll(async () => {
  await service.stop();
  rmSync(setuidFolder, { recursive: true });
});

const outputOf = async (tool: string, args: readonly string[] = [], more: Readonly<Record<string, unknown>> = {}) => {
  const { status, body } = await service.exec(user, tool, args, more);
  expect(status, JSON.stringify(body)).toBe(200);
  expect(body, body.stderr).toMatchObject({ exitCode: 0, stderr: '' });
  return body.stdout ?? '';
};

/** A field of the tool's own /proc/self/status, without a shell in between. */
const statusFields = async (): Promise<(name: string) => string> => {
  const text = await outputOf('cat', ['/proc/self/status']);
  return (name) => {
    const found = new RegExp(`^${name}:[\\t ]*(.*)$`, 'm').exec(text)?.[1];
    if (found === undefined) throw new Error(`there is no ${name}`);
    return found.trim();
  };
};

test('a tool has its user’s uid and gid in all four places and no other group', async () => {
  const field = await statusFields();
  expect(field('Name')).toBe('cat');
  expect(field('Uid')).toBe([uid, uid, uid, uid].join('\t'));
  expect(field('Gid')).toBe([uid, uid, uid, uid].join('\t'));
  expect(field('Groups')).toBe('');
});

test('a tool has no capability and cannot gain one', async () => {
  const field = await statusFields();
  for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapAmb']) expect(field(set), set).toBe('0000000000000000');
  expect(field('NoNewPrivs')).toBe('1');
});

test('a set-uid program gains nothing', async () => {
  expect(lstatSync(setuidId).mode & 0o7777).toBe(0o4755);
  const [plain, nothing] = [['--reuid', '65533', '--regid', '65533', '--clear-groups'], { env: {} }];
  const elsewhere = execFileSync('/usr/bin/setpriv', [...plain, setuidId], nothing).toString();
  // Without no_new_privs it does make its caller root, so this test can fail.
  expect(elsewhere).toContain('euid=0');
  expect(await outputOf('setuid-id')).toBe(`uid=${uid} gid=${uid} groups=${uid}\n`);
  expect(await outputOf('sh', ['-c', `${setuidId} -u`])).toBe(`${uid}\n`);
});

test('umask is 0077 and no signal is blocked, ignored or caught', async () => {
  const field = await statusFields();
  expect(field('Umask')).toBe('0077');
  for (const set of ['SigPnd', 'ShdPnd', 'SigBlk', 'SigIgn', 'SigCgt']) expect(field(set), set).toMatch(/^0+$/);
});

test('descriptors are 0, 1 and 2 only', async () => {
  const listed = (await outputOf('ls', ['-l', '/proc/self/fd'])).trim().split('\n').slice(1);
  const open = listed.map((line) => / (\d+) -> (.*)$/.exec(line)?.slice(1) ?? []);
  // The last one is the folder that ls itself reads.
  expect(open.map(([number]) => number)).toEqual(['0', '1', '2', '3']);
  expect(open.map(([, target]) => target?.replace(/\d+/g, 'N'))).toEqual([
    '/dev/null',
    'pipe:[N]',
    'pipe:[N]',
    '/proc/N/fd',
  ]);
  expect(open[1]?.[1]).not.toBe(open[2]?.[1]);
});

test('standard input is empty', async () => {
  expect(await outputOf('cat')).toBe('');
  expect(await outputOf('readlink', ['/proc/self/fd/0'])).toBe('/dev/null\n');
});

test('the environment is PATH, LANG, HOME and what the request gave, in full', async () => {
  const home = homeOf(service, user);
  const promised = ['PATH=/usr/local/bin:/usr/bin:/bin', 'LANG=C.UTF-8', `HOME=${home}`];
  const lines = (text: string) => text.trimEnd().split('\n').sort();
  expect(lines(await outputOf('env'))).toEqual(promised.toSorted());
  const more = lines(await outputOf('env', [], { env: ['GITLAB_TOKEN=given', 'EMPTY='] }));
  expect(more).toEqual([...promised, 'GITLAB_TOKEN=given', 'EMPTY='].sort());
});

test('neither the service’s token nor any of its settings is in a tool’s environment', async () => {
  const text = await outputOf('cat', ['/proc/self/environ']);
  expect(text).toContain('HOME=');
  expect(text).not.toContain(token);
  expect(text).not.toContain('RUNNER_');
});

test('limits are the configured ones, soft and hard alike; processes get the helper’s share on top; no core files', async () => {
  const text = await outputOf('cat', ['/proc/self/limits']);
  const limit = (name: string) => new RegExp(`^${name} +(\\S+) +(\\S+)`, 'm').exec(text)?.slice(1);
  expect(limit('Max processes')).toEqual(['56', '56']);
  expect(limit('Max file size')).toEqual(['7000000', '7000000']);
  expect(limit('Max core file size')).toEqual(['0', '0']);
  expect(limit('Max address space')).toEqual(['unlimited', 'unlimited']);
});

test('a tool cannot raise its limits', async () => {
  const { body } = await service.exec(user, 'prlimit', ['--fsize=8000000', 'true']);
  expect(body.exitCode).not.toBe(0);
  expect(body.stderr).toContain('not permitted');
  const lower = await service.exec(user, 'prlimit', ['--fsize=6000000', 'true']);
  expect(lower.body, 'lowering works').toMatchObject({ exitCode: 0 });
});

test('a file over the limit is not written', async () => {
  const { body } = await service.exec(user, 'sh', ['-c', 'head -c 7000001 /dev/zero >big; echo $?']);
  expect(body.exitCode).toBe(0);
  expect(body.stdout).not.toBe('0\n');
  expect(lstatSync(join(homeOf(service, user), 'big')).size).toBe(7_000_000);
});

test('the working directory is the home, or the folder that was asked for', async () => {
  const home = homeOf(service, user);
  expect(await outputOf('readlink', ['/proc/self/cwd'])).toBe(`${home}\n`);
  expect(await outputOf('readlink', ['/proc/self/cwd'], { dir: 'repos' })).toBe(`${home}/repos\n`);
});

test('a tool leads a session and a group of its own, without a terminal', async () => {
  const [pid, , , , group, session, terminal] = (await outputOf('cat', ['/proc/self/stat'])).split(' ');
  expect(Number(pid)).toBeGreaterThan(1);
  expect([group, session, terminal]).toEqual([pid, pid, '0']);
});

test('a tool is the first to go when memory runs out', async () => {
  expect(await outputOf('cat', ['/proc/self/oom_score_adj'])).toBe('1000\n');
});
