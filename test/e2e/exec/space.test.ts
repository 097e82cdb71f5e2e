import { existsSync, lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { gatewayId, Service } from '../../support/service.ts';
import { homeOf, spaceOf, systemTools, uidOf } from '../../support/user.ts';

const user = 100_010;
let service: Service;

beforeAll(async () => {
  service = await Service.start({ settings: systemTools('sh') });
});
afterAll(() => service.stop());

const modeOf = (path: string): number => lstatSync(path).mode & 0o7777;

test('a space is made on first use: it and all in it are folders 0700 of its own uid and gid', async () => {
  const space = spaceOf(service, user);
  expect(existsSync(space)).toBe(false);
  const { status } = await service.exec(user, 'git', ['version']);
  expect(status).toBe(200);
  for (const name of ['', 'tmp', 'home', 'home/repos', 'home/work']) {
    const found = lstatSync(join(space, name));
    expect(found.isDirectory(), name).toBe(true);
    expect([found.mode & 0o7777, found.uid, found.gid], name).toEqual([0o700, uidOf(user), uidOf(user)]);
  }
  expect(readdirSync(space).sort()).toEqual(['home', 'tmp']);
  expect(readdirSync(homeOf(service, user)).sort()).toEqual(['repos', 'work']);
});

test('the work dir is root’s and 0711, the state dir and the folder of the spawner’s socket are root’s and 0700', () => {
  const folders = [
    [service.workDir, 0o711],
    [join(service.workDir, '.runner'), 0o700],
    [join(service.folder, 'run', 'spawner'), 0o700],
  ] as const;
  for (const [folder, mode] of folders) expect([lstatSync(folder).uid, modeOf(folder)], folder).toEqual([0, mode]);
});

test('the folder of the worker’s socket is root’s and the gateway’s group’s, 0750', () => {
  const folder = lstatSync(join(service.folder, 'run'));
  expect([folder.uid, folder.gid, folder.mode & 0o7777]).toEqual([0, gatewayId, 0o750]);
  const socket = lstatSync(service.socket);
  expect(socket.isSocket()).toBe(true);
  expect([socket.uid, socket.gid, socket.mode & 0o7777]).toEqual([0, gatewayId, 0o660]);
});

test('no half-made space is left in the work dir', () => {
  const spaces = readdirSync(service.workDir).filter((name) => name !== '.runner');
  expect(spaces).toContain(`u${uidOf(user)}`);
  for (const name of spaces) expect(name).toMatch(/^u\d+$/);
});

test('what tools make is for nobody else: umask 077', async () => {
  const { body } = await service.exec(user, 'sh', ['-c', 'umask; touch file; mkdir folder; git init -q made']);
  expect(body).toMatchObject({ exitCode: 0, stdout: '0077\n' });
  const home = homeOf(service, user);
  expect(modeOf(join(home, 'file'))).toBe(0o600);
  expect(modeOf(join(home, 'folder'))).toBe(0o700);
  expect(modeOf(join(home, 'made', '.git', 'config'))).toBe(0o600);
  expect(lstatSync(join(home, 'file'))).toMatchObject({ uid: uidOf(user), gid: uidOf(user) });
});

test('many first uses at once make one space each', async () => {
  const users = Array.from({ length: 20 }, (_, index) => 100_020 + index);
  for (const one of users) expect(existsSync(spaceOf(service, one))).toBe(false);
  const answers = await Promise.all(users.map((one) => service.exec(one, 'sh', ['-c', 'echo "$HOME"; id -u'])));
  for (const [index, { body }] of answers.entries()) {
    const one = users[index] ?? -1;
    expect(body.stdout).toBe(`${homeOf(service, one)}\n${uidOf(one)}\n`);
    expect(lstatSync(spaceOf(service, one))).toMatchObject({ uid: uidOf(one) });
  }
});

test('the first and the last user there can be have spaces of their own', async () => {
  for (const [edge, uid] of [
    [0, 20_000],
    [1_000_000, 1_020_000],
  ] as const) {
    const { status, body } = await service.exec(edge, 'sh', ['-c', 'id -u; id -g; id -G']);
    expect(status).toBe(200);
    expect(body.stdout).toBe(`${uid}\n${uid}\n${uid}\n`);
    expect(lstatSync(join(service.workDir, `u${uid}`)).uid).toBe(uid);
  }
});
