import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { gatewayId, Service } from '../../support/service.ts';
import { homeOf, spaceOf, systemTools, uidOf } from '../../support/user.ts';

let service: Service;
let next = 110_400;

beforeAll(async () => {
  service = await Service.start({ settings: systemTools('touch', 'sh') });
});
afterAll(() => service.stop());

/** A person with a space that works. */
const someone = async (): Promise<{ user: number; space: string }> => {
  next += 1;
  expect((await service.exec(next, 'touch', ['before'])).status).toBe(200);
  return { user: next, space: spaceOf(service, next) };
};

/** Expects that a run is refused, that it is audited, and that nothing was repaired. */
const broken = async (user: number, path: string): Promise<void> => {
  const before = lstatSync(path, { throwIfNoEntry: false });
  const { status, body } = await service.exec(user, 'touch', ['after']);
  expect([status, body.error]).toEqual([500, 'workspace_broken']);
  expect(Object.keys(body).sort()).toEqual(['error', 'message', 'operationId']);
  const line = await service.audited(({ operationId }) => operationId === body.operationId);
  expect(line).toMatchObject({ action: 'exec', user, tool: 'touch', status: 'error', reason: 'workspace_broken' });
  const after = lstatSync(path, { throwIfNoEntry: false });
  expect([after?.mode, after?.uid, after?.gid, after?.ino]).toEqual([
    before?.mode,
    before?.uid,
    before?.gid,
    before?.ino,
  ]);
  expect(existsSync(join(homeOf(service, user), 'after'))).toBe(false);
};

test('a space with any other mode than 0700 is broken, and works again when a person has mended it', async () => {
  const { user, space } = await someone();
  for (const mode of [0o755, 0o750, 0o701, 0o710, 0o770, 0o777, 0o600, 0o500, 0o000, 0o1700, 0o2700, 0o4700]) {
    chmodSync(space, mode);
    expect(lstatSync(space).mode & 0o7777).toBe(mode);
    await broken(user, space);
  }
  chmodSync(space, 0o700);
  expect((await service.exec(user, 'touch', ['after'])).status).toBe(200);
});

test('a space with another owner or group is broken', async () => {
  const { user, space } = await someone();
  const uid = uidOf(user);
  for (const [owner, group] of [
    [0, 0],
    [uid + 1, uid + 1],
    [uid, uid + 1],
    [uid, 0],
    [0, uid],
    [gatewayId, gatewayId],
  ] as const) {
    chownSync(space, owner, group);
    await broken(user, space);
  }
  chownSync(space, uid, uid);
  expect((await service.exec(user, 'touch', ['after'])).status).toBe(200);
});

test('a link in place of a space is broken, whatever it leads to', async () => {
  const [{ user, space }, other] = [await someone(), await someone()];
  renameSync(space, `${space}-moved`);
  for (const target of [`${space}-moved`, other.space, '/tmp', '/nonexistent']) {
    symlinkSync(target, space);
    expect(lstatSync(space).isSymbolicLink()).toBe(true);
    await broken(user, space);
    rmSync(space);
  }
  expect(existsSync(join(other.space, 'home', 'after'))).toBe(false);
});

test('a link planted before the first use is broken: nothing is made through it', async () => {
  next += 1;
  const target = join(service.folder, 'planted');
  mkdirSync(target, { mode: 0o700 });
  chownSync(target, uidOf(next), uidOf(next));
  symlinkSync(target, spaceOf(service, next));
  await broken(next, spaceOf(service, next));
  expect(existsSync(join(target, 'home'))).toBe(false);
});

test('a file in place of a space is broken', async () => {
  next += 1;
  writeFileSync(spaceOf(service, next), 'x', { mode: 0o700 });
  chownSync(spaceOf(service, next), uidOf(next), uidOf(next));
  await broken(next, spaceOf(service, next));
});

test('a home that is missing, a file, or a link is broken', async () => {
  const { user, space } = await someone();
  const home = join(space, 'home');
  const moved = join(space, 'moved');
  renameSync(home, moved);
  await broken(user, home);
  symlinkSync('moved', home);
  await broken(user, home);
  rmSync(home);
  writeFileSync(home, '');
  await broken(user, home);
  rmSync(home);
  renameSync(moved, home);
  expect((await service.exec(user, 'touch', ['after'])).status).toBe(200);
});

test('a person can’t break a space for others, nor open it: the owner’s own chmod is refused or seen', async () => {
  const { user, space } = await someone();
  const { body } = await service.exec(user, 'sh', ['-c', 'chmod 755 "$HOME/.."']);
  expect(body.exitCode).toBe(0);
  expect(lstatSync(space).mode & 0o7777).toBe(0o755);
  await broken(user, space);
});

test('everybody else’s space goes on working', async () => {
  const { user } = await someone();
  expect((await service.exec(user, 'touch', ['after'])).status).toBe(200);
});
