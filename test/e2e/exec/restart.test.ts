import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { allProcesses, treeOf } from '../../support/processes.ts';
import { Service } from '../../support/service.ts';
import { homeOf, systemTools } from '../../support/user.ts';
import { eventually } from '../../support/wait.ts';

const user = 100_050;
const settings = systemTools('sh');
let first: Service;
let second: Service | undefined;

beforeAll(async () => {
  first = await Service.start({ settings });
});
afterAll(async () => {
  await second?.stop();
  first.destroy();
});

test('a service that starts again on the same folder keeps the spaces and works in them', async () => {
  const made = await first.exec(user, 'sh', ['-c', 'git init -q kept && echo content >kept/file && git -C kept add .']);
  expect(made.body).toMatchObject({ exitCode: 0, stderr: '' });
  expect(readFileSync(join(homeOf(first, user), 'kept', 'file'), 'utf8')).toBe('content\n');

  first.process.kill('SIGTERM');
  expect(await first.exited).toEqual({ code: 0, signal: null });
  second = await Service.start({ settings, folder: first.folder });

  const { status, body } = await second.exec(user, 'git', ['status', '--porcelain'], { dir: 'kept' });
  expect(status).toBe(200);
  expect(body.stdout).toBe('A  file\n');
  const other = await second.exec(user + 1, 'git', ['init', 'new']);
  expect(other.body.exitCode).toBe(0);
});

test('a third start after a crash of everything works as well', async () => {
  const before = second;
  expect(before).toBeDefined();
  if (before === undefined) return;
  // What is held in the folder must not be needed to start again.
  before.client.close();
  const parts = treeOf(before.process.pid ?? -1).map(({ pid }) => pid);
  before.process.kill('SIGKILL');
  expect((await before.exited).signal).toBe('SIGKILL');
  await eventually('all of it is gone', () =>
    allProcesses().every(({ pid, state }) => !parts.includes(pid) || state === 'Z'),
  );
  second = await Service.start({ settings, folder: first.folder });
  const { body } = await second.exec(user, 'sh', ['-c', 'cat kept/file']);
  expect(body.stdout).toBe('content\n');
  rmSync(join(homeOf(first, user), 'kept'), { recursive: true });
});
