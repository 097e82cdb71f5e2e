import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { lstatSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Service } from '../../support/service.ts';
import { homeOf, systemTools, uidOf } from '../../support/user.ts';
import { eventually } from '../../support/wait.ts';

const [user, other] = [100_450, 100_451] as const;
let service: Service;
let home: string;

beforeAll(async () => {
  service = await Service.start({ settings: systemTools('sh', 'readlink', 'touch') });
  home = homeOf(service, user);
  const script = `mkdir -p -- a/b/c 'with space' 한글 shut -dash && echo text >file && chmod 000 shut &&
    ln -s a/b inside && ln -s ../a/b a/up && ln -s .. out && ln -s ../../u120451/home neighbour && ln -s ../.. a/far &&
    ln -s "$HOME/a" absolute && ln -s / root && ln -s /proc/self/cwd magic && ln -s loop loop && ln -s nowhere dangling &&
    ln -s a/../.. sneaky && ln -s file tofile`;
  const made = await service.exec(user, 'sh', ['-c', script]);
  expect(made.body).toMatchObject({ exitCode: 0, stderr: '' });
  await service.exec(other, 'touch', ['private']);
});
afterAll(() => service.stop());

const at = (dir: unknown) => service.exec(user, 'readlink', ['/proc/self/cwd'], { dir });

test('a folder beneath home, however it is spelled', async () => {
  const spellings = {
    a: 'a',
    'a/b/c': 'a/b/c',
    'a/b/c/': 'a/b/c',
    './a': 'a',
    'a/./b': 'a/b',
    'a//b': 'a/b',
    'with space': 'with space',
    한글: '한글',
    '-dash': '-dash',
  };
  for (const [dir, folder] of Object.entries(spellings)) {
    const { status, body } = await at(dir);
    expect([status, body.stdout], dir).toEqual([200, `${home}/${folder}\n`]);
  }
});

test('empty, null, "." and absent mean home', async () => {
  for (const dir of ['', null, '.', './', undefined]) {
    const { status, body } = await at(dir);
    expect([status, body.stdout], String(dir)).toEqual([200, `${home}\n`]);
  }
});

test('a relative link that stays beneath home is followed', async () => {
  for (const [dir, link, folder] of [
    ['inside', 'a/b', 'a/b'],
    ['inside/c', 'a/b', 'a/b/c'],
    ['a/up', '../a/b', 'a/b'],
  ] as const) {
    expect(readlinkSync(join(home, dir.replace('/c', '')))).toBe(link);
    const { status, body } = await at(dir);
    expect([status, body.stdout], dir).toEqual([200, `${home}/${folder}\n`]);
  }
});

/** Refused, with its code, without a run. */
const refused = async (dir: string, code: string, expected: number): Promise<void> => {
  const name = `ran-${Math.random()}`;
  const answer = await service.exec(user, 'touch', [join(home, name)], { dir });
  expect([answer.status, answer.body.error], JSON.stringify(dir)).toEqual([expected, code]);
  expect(lstatSync(join(home, name), { throwIfNoEntry: false }), 'nothing ran').toBeUndefined();
};

test('a link that leads out is outside_workspace, also on the way and also by detours', async () => {
  for (const link of ['out', 'neighbour', 'a/far', 'sneaky']) {
    expect(lstatSync(join(home, link)).isSymbolicLink(), link).toBe(true);
    for (const dir of [link, `${link}/home`, `${link}/`]) await refused(dir, 'outside_workspace', 400);
  }
});

test('an absolute link is outside_workspace, even to a folder beneath home', async () => {
  expect(readlinkSync(join(home, 'absolute'))).toBe(`${home}/a`);
  for (const dir of ['absolute', 'absolute/b', 'root', 'root/tmp', 'magic'])
    await refused(dir, 'outside_workspace', 400);
});

test('"..", an absolute path and NUL are outside_workspace, whatever exists', async () => {
  for (const dir of [
    '..',
    '../',
    'a/..',
    'a/../a',
    '../../u120451/home',
    './..',
    '/',
    '/tmp',
    home,
    `//${home}`,
    'a\0',
    '\0',
    'a\0/../b',
  ])
    await refused(dir, 'outside_workspace', 400);
});

test('a name with dots that is no ".." is only a name', async () => {
  const made = await service.exec(user, 'sh', ['-c', 'mkdir ... ..a b..']);
  expect(made.body).toMatchObject({ exitCode: 0 });
  for (const dir of ['...', '..a', 'b..']) expect((await at(dir)).body.stdout, dir).toBe(`${home}/${dir}\n`);
});

test('what is not there is not_found', async () => {
  for (const dir of ['missing', 'a/missing', 'dangling', 'missing/', 'x'.repeat(300)])
    await refused(dir, 'not_found', 404);
});

test('what is no folder is bad_target', async () => {
  expect(lstatSync(join(home, 'file')).isFile()).toBe(true);
  for (const dir of ['file', 'file/', 'file/x', 'tofile', 'loop']) await refused(dir, 'bad_target', 400);
});

test('a folder that its owner may not enter: exec_failed, naming the step', async () => {
  expect(lstatSync(join(home, 'shut')).mode & 0o777).toBe(0);
  const { status, body } = await at('shut');
  expect(status).toBe(500);
  expect(body).toMatchObject({ error: 'exec_failed', details: { step: 'directory', errno: 'EACCES' } });
});

test('a path longer than any can be is bad_request', async () => {
  const { status, body } = await at('x/'.repeat(3_000));
  expect([status, body.error]).toEqual([400, 'bad_request']);
});

test('a folder that is swapped for a link all the time never lets a tool out', async () => {
  const [uid, from] = [uidOf(other), homeOf(service, other)];
  const swap = 'while mkdir spot; do rmdir spot; ln -s / spot; rm spot; ln -s ../../.. spot; rm spot; done';
  // Beside the lock that lets one run at a time in: as that user, but by the test itself.
  const as = [`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', '/bin/sh', '-c', swap];
  const swapper = spawn('/usr/bin/setpriv', as, { cwd: from, stdio: 'ignore' });
  const ended = once(swapper, 'exit');
  await eventually('a link was seen', () => lstatSync(join(from, 'spot'), { throwIfNoEntry: false })?.isSymbolicLink());
  const seen = new Map<string, number>();
  for (let tries = 0; tries < 60; tries += 1) {
    const { body } = await service.exec(other, 'readlink', ['/proc/self/cwd'], { dir: 'spot' });
    const inside = body.stdout?.replace(' (deleted)', '') === `${from}/spot\n`;
    const outcome = body.error ?? (inside ? 'inside' : `outside: ${body.stdout}`);
    seen.set(outcome, (seen.get(outcome) ?? 0) + 1);
  }
  swapper.kill('SIGKILL');
  await ended;
  // Both sides of the race were met, and nothing else came of it.
  expect(seen.get('outside_workspace')).toBeGreaterThan(0);
  for (const outcome of seen.keys()) expect(['inside', 'outside_workspace', 'not_found']).toContain(outcome);
});
