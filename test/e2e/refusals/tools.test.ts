import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Service } from '../../support/service.ts';
import { homeOf, spaceOf } from '../../support/user.ts';

const user = 110_200;
let folder: string;
let service: Service;

beforeAll(async () => {
  folder = mkdtempSync('/tmp/runner-tools-');
  chmodSync(folder, 0o755);
  const make = (name: string, text: string, mode: number) => {
    writeFileSync(join(folder, name), text);
    chmodSync(join(folder, name), mode);
  };
  make('plain', '#!/bin/sh\ntouch ran\n', 0o644);
  make('no-interpreter', '#!/nonexistent/interpreter\ntouch ran\n', 0o755);
  make('no-format', 'touch ran\n', 0o755);
  make('roots-only', '#!/bin/sh\ntouch ran\n', 0o700);
  const tools = ['plain', 'no-interpreter', 'no-format', 'roots-only', 'missing'].map(
    (name) => `${name}=${folder}/${name}`,
  );
  service = await Service.start({
    settings: {
      RUNNER_TOOLS: [...tools, `folder=${folder}`, 'touch=/usr/bin/touch'].join(','),
      RUNNER_GLAB: '/nonexistent',
    },
  });
});
afterAll(async () => {
  await service.stop();
  rmSync(folder, { recursive: true });
});

test('only names on the list are tools; a refused one makes no space and starts nothing', async () => {
  const names = [
    'sh',
    '/bin/sh',
    '../bin/sh',
    '../../bin/sh',
    './git',
    'git ',
    ' git',
    'GIT',
    'git\0',
    'git\0x',
    'git\n',
    'bash',
    '',
    '.',
    '/',
    '*',
    `${folder}/plain`,
    'usr/bin/touch',
    '/usr/bin/touch',
    'toString',
    '__proto__',
    'constructor',
    'gi',
    'gitt',
    'git;id',
    '$(id)',
    'evo-workflow.',
    '한글',
  ];
  for (const tool of names) {
    const { status, body, text } = await service.exec(user, tool, ['anything']);
    expect([status, body.error], JSON.stringify(tool)).toEqual([403, 'tool_not_allowed']);
    expect(Object.keys(body).sort()).toEqual(['error', 'message', 'operationId']);
    expect(text).not.toContain('anything');
    const line = await service.audited(({ operationId }) => operationId === body.operationId);
    expect(line).toMatchObject({ action: 'exec', user, status: 'denied', reason: 'tool_not_allowed' });
    expect(line).not.toHaveProperty('tool');
  }
  expect(existsSync(spaceOf(service, user))).toBe(false);
  expect((await service.exec(user, 'touch', ['allowed'])).status).toBe(200);
  expect(existsSync(join(homeOf(service, user), 'allowed'))).toBe(true);
});

test('a tool that can’t be executed is exec_failed, naming the step and the error, and nothing has run', async () => {
  for (const [tool, errno] of [
    ['glab', 'ENOENT'],
    ['missing', 'ENOENT'],
    ['plain', 'EACCES'],
    ['folder', 'EACCES'],
    ['no-interpreter', 'ENOENT'],
    ['no-format', 'ENOEXEC'],
    ['roots-only', 'EACCES'],
  ] as const) {
    const { status, body } = await service.exec(user, tool, ['x']);
    expect([status, body.error], tool).toEqual([500, 'exec_failed']);
    expect(body.details, tool).toEqual({ step: 'exec', errno });
    expect(Object.keys(body).sort()).toEqual(['details', 'error', 'message', 'operationId']);
    const line = await service.audited(({ operationId }) => operationId === body.operationId);
    expect(line).toMatchObject({ action: 'exec', user, tool, args: 1, status: 'error', reason: 'exec_failed' });
    expect(line).not.toHaveProperty('exit');
  }
  expect(readdirSync(homeOf(service, user))).not.toContain('ran');
});

test('a tool that is missing at the start is no reason not to start, and others work', async () => {
  expect((await service.exec(user, 'git', ['version'])).body.stdout).toMatch(/^git version /);
});
