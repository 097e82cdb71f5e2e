import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Service } from '../../support/service.ts';
import { systemTools } from '../../support/user.ts';

const user = 100_550;
let folder: string;
let service: Service;

beforeAll(async () => {
  folder = mkdtempSync('/tmp/runner-agent-');
  chmodSync(folder, 0o755);
  const program = join(folder, 'evo-workflow');
  writeFileSync(program, '#!/bin/sh\nfor argument in "$@"; do printf "%s\\n" "$argument"; done\n', { mode: 0o755 });
  chmodSync(program, 0o755);
  service = await Service.start({ settings: { ...systemTools('sh'), RUNNER_EVO_WORKFLOW: program } });
});
afterAll(async () => {
  await service.stop();
  rmSync(folder, { recursive: true });
});

const run = (args: readonly string[], more: Readonly<Record<string, unknown>> = {}) =>
  service.exec(user, 'evo-workflow', args, more);

test('without an agent the arguments are the caller’s own', async () => {
  expect((await run(['run', '--fast'])).body).toMatchObject({ exitCode: 0, stdout: 'run\n--fast\n' });
});

test('the agent’s option and id are the very last arguments', async () => {
  for (const args of [[], ['run'], ['run', '--'], ['--session-agent', 'another', 'last']]) {
    const { status, body } = await run(args, { agent: 'agent.1_x-Y' });
    expect(status).toBe(200);
    expect(body.stdout).toBe([...args, '--session-agent', 'agent.1_x-Y', ''].join('\n'));
  }
});

test('ids of 1 and of 128 characters are taken', async () => {
  for (const agent of ['a', '.', '_', '9', '..', 'x'.repeat(128)])
    expect((await run([], { agent })).body.stdout, agent).toBe(`--session-agent\n${agent}\n`);
});

test('null and empty are as if absent, with any tool', async () => {
  for (const agent of [null, '']) {
    expect((await run(['x'], { agent })).body.stdout).toBe('x\n');
    expect((await service.exec(user, 'sh', ['-c', 'echo ok'], { agent })).body.stdout).toBe('ok\n');
  }
});

test('anything else is bad_agent, and nothing runs', async () => {
  for (const agent of ['-x', '--help', 'a b', 'a/b', 'a\n', '\na', 'é', 'a\0', 'x'.repeat(129), 'a;b', '$x', ' ']) {
    const { status, body, text } = await run([], { agent });
    expect([status, body.error], JSON.stringify(agent)).toEqual([400, 'bad_agent']);
    if (agent.trim().length > 1) expect(text).not.toContain(JSON.stringify(agent));
  }
});

test('with another tool it is bad_agent, also with one that is not on the list', async () => {
  for (const tool of ['git', 'sh', 'glab', 'nonsense', 'evo-workflow ', 'EVO-WORKFLOW']) {
    const { status, body } = await service.exec(user, tool, [], { agent: 'agent' });
    expect([status, body.error], tool).toEqual([400, 'bad_agent']);
  }
});

test('an agent that is no string is bad_request', async () => {
  for (const agent of [1, true, ['a'], { id: 'a' }]) {
    const { status, body } = await run([], { agent });
    expect([status, body.error], JSON.stringify(agent)).toEqual([400, 'bad_request']);
  }
});

test('the audit counts the caller’s own arguments and never has the agent’s id', async () => {
  const { body } = await run(['one', 'two'], { agent: 'a-very-special-agent' });
  const line = await service.audited(({ operationId }) => operationId === body.operationId);
  expect(line).toMatchObject({ tool: 'evo-workflow', args: 2, status: 'ok' });
  expect(service.auditText.join('\n')).not.toContain('special-agent');
  expect(service.log.join('\n')).not.toContain('special-agent');
});
