import { chmodSync, chownSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type HeldRun, holdRun } from '../../support/held-run.ts';
import { allProcesses, processesOf } from '../../support/processes.ts';
import { reach, reachTool } from '../../support/reach.ts';
import { Service, token } from '../../support/service.ts';
import { homeOf, spaceOf, systemTools, uidOf } from '../../support/user.ts';

const [victim, thief] = [100_200, 100_201] as const;
const secret = 'a secret value of the victim';
let service: Service;
let held: HeldRun;

beforeAll(async () => {
  const { RUNNER_TOOLS } = systemTools('sh', 'cat', 'ps');
  service = await Service.start({ settings: { RUNNER_TOOLS: `${RUNNER_TOOLS},${reachTool}` } });
  const made = await service.exec(victim, 'sh', ['-c', 'echo private >file && mkdir open && chmod 777 open file']);
  expect(made.body).toMatchObject({ exitCode: 0 });
  held = await holdRun(service, victim, { env: [`SECRET=${secret}`] });
});
afterAll(async () => {
  held.release();
  expect((await held.answer).body).toMatchObject({ exitCode: 0 });
  await service.stop();
});

test('the attempts work where they are allowed: on one’s own', async () => {
  const home = homeOf(service, thief);
  expect(await reach(service, thief, 'write', `${home}/own`)).toBe('ok');
  for (const attempt of [
    ['read', `${home}/own`],
    ['list', home],
    ['enter', home],
    ['remove', `${home}/own`],
  ])
    expect(await reach(service, thief, ...attempt), attempt.join(' ')).toBe('ok');
  const own = await service.exec(thief, 'sh', [
    '-c',
    `sleep 100 & for a in peek trace "signal $! 0" ; do set -- $a; ${reachTool.split('=')[1]} $1 $! $3; done`,
  ]);
  expect(own.body.stdout).toBe('0\n0\n0\n');
});

test('another’s home can’t be listed, read, written, entered or removed from, however open its files are', async () => {
  const home = homeOf(service, victim);
  expect(readFileSync(join(home, 'file'), 'utf8')).toBe('private\n');
  const attempts = [
    ['list', spaceOf(service, victim)],
    ['list', home],
    ['enter', spaceOf(service, victim)],
    ['enter', `${home}/open`],
    ['read', `${home}/file`],
    ['write', `${home}/file`],
    ['write', `${home}/open/new`],
    ['write', `${spaceOf(service, victim)}/tmp/new`],
    ['remove', `${home}/file`],
    ['remove', spaceOf(service, victim)],
  ];
  for (const attempt of attempts)
    expect(await reach(service, thief, ...attempt), attempt.join(' ')).toMatch(/^E(ACCES|ISDIR)$/);
  const shell = `ls -la ${home}; cat ${home}/file; echo x >${home}/open/new; cd ${home} && pwd; true`;
  const { body } = await service.exec(thief, 'sh', ['-c', shell]);
  expect(body.stdout).toBe('');
  expect(body.stderr?.match(/denied|can't cd/g)?.length).toBe(4);
  expect(existsSync(join(home, 'open', 'new'))).toBe(false);
  expect(readFileSync(join(home, 'file'), 'utf8')).toBe('private\n');
});

test('the work dir, the state dir and the service’s folders can’t be listed or written by tools', async () => {
  expect(existsSync(join(service.workDir, '.runner'))).toBe(true);
  const attempts = [
    ['list', service.workDir],
    ['write', `${service.workDir}/new`],
    ['list', `${service.workDir}/.runner`],
    ['enter', `${service.workDir}/.runner`],
    ['read', `${service.workDir}/.runner/lock`],
    ['list', join(service.folder, 'run')],
    ['write', join(service.folder, 'run', 'new')],
  ];
  for (const attempt of attempts) expect(await reach(service, thief, ...attempt), attempt.join(' ')).toBe('EACCES');
});

test('another’s processes can’t be looked into: environment, memory, descriptors, working directory', async () => {
  const proc = `/proc/${held.pid}`;
  expect(readFileSync(`${proc}/environ`, 'utf8')).toContain(secret);
  expect(processesOf(uidOf(victim)).map(({ pid }) => pid)).toContain(held.pid);
  for (const attempt of [
    ['read', `${proc}/environ`],
    ['read', `${proc}/mem`],
    ['read', `${proc}/maps`],
    ['list', `${proc}/fd`],
    ['enter', `${proc}/cwd`],
    ['list', `${proc}/root/`],
  ])
    expect(await reach(service, thief, ...attempt), attempt.join(' ')).toBe('EACCES');
  const { body } = await service.exec(thief, 'sh', ['-c', `cat /proc/[0-9]*/environ | tr '\\0' '\\n'`]);
  expect(body.stdout).toContain('HOME=');
  expect(body.stdout).not.toContain(secret);
});

test('another’s processes can’t be signalled, traced, peeked at or limited', async () => {
  for (const attempt of [
    ['signal', String(held.pid), '0'],
    ['signal', String(held.pid), '9'],
    ['signal', String(held.pid), '19'],
    ['trace', String(held.pid)],
    ['peek', String(held.pid)],
    ['limit', String(held.pid)],
  ])
    expect(await reach(service, thief, ...attempt), attempt.join(' ')).toBe('EPERM');
  const still = processesOf(uidOf(victim)).find(({ pid }) => pid === held.pid);
  expect(still?.state).toBe('S');
});

test('killing everything that can be reached reaches nobody else', async () => {
  const before = ['init', 'worker', 'gateway', 'spawner'] as const;
  const pids = before.map((part) => service.part(part).pid);
  const { body } = await service.exec(thief, 'sh', ['-c', 'kill -9 -1']);
  // dash leaves itself out; a tool that ended itself would be as good.
  expect(body.exitCode === -1 || body.exitCode === 0 || body.stderr !== '').toBe(true);
  expect(before.map((part) => service.part(part).pid)).toEqual(pids);
  expect(allProcesses().some(({ pid }) => pid === held.pid)).toBe(true);
});

test('the service’s own processes can’t be signalled, traced or looked into', async () => {
  for (const part of ['init', 'worker', 'gateway', 'spawner'] as const) {
    const { pid } = service.part(part);
    expect(await reach(service, thief, 'signal', String(pid), '0'), part).toBe('EPERM');
    expect(await reach(service, thief, 'signal', String(pid), '10'), part).toBe('EPERM');
    for (const attempt of [
      ['trace', String(pid)],
      ['peek', String(pid)],
      ['limit', String(pid)],
    ])
      expect(await reach(service, thief, ...attempt), `${part} ${attempt[0]}`).toBe('EPERM');
    for (const file of ['environ', 'mem', 'maps'])
      expect(await reach(service, thief, 'read', `/proc/${pid}/${file}`), `${part} ${file}`).toBe('EACCES');
    expect(await reach(service, thief, 'list', `/proc/${pid}/fd`), `${part} fd`).toBe('EACCES');
  }
});

test('a run’s supervisor can’t be signalled or traced by the run it watches', async () => {
  const attempt = `for a in "signal $PPID 9" "signal $PPID 19" "trace $PPID" "peek $PPID" "limit $PPID" "read /proc/$PPID/mem"; do ${reachTool.split('=')[1]} $a; done`;
  const { body } = await service.exec(thief, 'sh', ['-c', attempt]);
  expect(body).toMatchObject({ exitCode: 0, stdout: '1\n1\n1\n1\n1\n13\n' });
});

test('no user reaches the worker’s or the spawner’s socket', async () => {
  const spawner = join(service.folder, 'run', 'spawner', 'spawner.sock');
  expect(existsSync(spawner)).toBe(true);
  for (const socket of [service.socket, spawner])
    expect(await reach(service, thief, 'connect', socket), socket).toBe('EACCES');
});

test('the token is in no process that a user could read, and in the environment of none but the starting ones', () => {
  for (const part of ['worker', 'spawner'] as const)
    expect(readFileSync(`/proc/${service.part(part).pid}/environ`, 'latin1'), part).not.toContain(token);
});

test('a link to another’s file in one’s own home leads nowhere', async () => {
  const target = join(homeOf(service, victim), 'file');
  const { body } = await service.exec(thief, 'sh', ['-c', `ln -s ${target} link; cat link`]);
  expect(body.exitCode).not.toBe(0);
  expect(body).toMatchObject({ stdout: '' });
  // A hard link to what one can't read is refused by the same folder.
  const hard = await service.exec(thief, 'sh', ['-c', `ln ${target} hard`]);
  expect(hard.body.exitCode).not.toBe(0);
});

test('a file that is another’s can’t be read or removed in a folder that all may write to', async () => {
  const folder = mkdtempSync('/tmp/runner-shared-');
  chmodSync(folder, 0o1777);
  const path = join(folder, 'file');
  writeFileSync(path, 'shared', { mode: 0o600 });
  chownSync(path, uidOf(victim), uidOf(victim));
  expect(await reach(service, thief, 'read', path)).toBe('EACCES');
  expect(await reach(service, thief, 'remove', path)).toBe('EPERM');
  expect(readFileSync(path, 'utf8')).toBe('shared');
  const removed = await service.exec(thief, 'sh', ['-c', `rm -f ${path}`]);
  expect(removed.body.exitCode).not.toBe(0);
  rmSync(folder, { recursive: true });
});
