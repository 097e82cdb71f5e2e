import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { allProcesses, treeOf } from '../../support/processes.ts';
import { gatewayId, Service } from '../../support/service.ts';
import { homeOf, spaceOf, systemTools, uidOf } from '../../support/user.ts';
import { eventually } from '../../support/wait.ts';

const user = 110_800;
const serviceToken = `token-${randomBytes(20).toString('hex')}`;
const planted: string[] = [];
/** A string that is nowhere else. */
const plant = (what: string): string => {
  const value = `${what}-${randomBytes(9).toString('hex')}`;
  planted.push(value);
  return value;
};
let folder: string;
let service: Service;

beforeAll(async () => {
  folder = mkdtempSync('/tmp/runner-secrets-');
  chmodSync(folder, 0o755);
  writeFileSync(join(folder, 'evo-workflow'), '#!/bin/sh\nexit 0\n');
  chmodSync(join(folder, 'evo-workflow'), 0o755);
  const settings = {
    RUNNER_TOKEN: serviceToken,
    RUNNER_EVO_WORKFLOW: join(folder, 'evo-workflow'),
    RUNNER_GLAB: '/nonexistent',
  };
  service = await Service.start({
    settings: { ...systemTools('sh', 'true'), ...settings, RUNNER_EXEC_TIMEOUT_SEC: '6', RUNNER_LOG_LEVEL: 'trace' },
  });
});
afterAll(async () => {
  await service.stop();
  rmSync(folder, { recursive: true });
});

const exec = (body: object, headers: Readonly<Record<string, string>> = {}) =>
  service.client.post('/v1/exec', body, { authorization: `Bearer ${serviceToken}`, ...headers });

/** Every file beneath a folder, links not followed. */
const filesBeneath = (top: string, leaveOut: readonly string[]): string[] =>
  leaveOut.includes(top)
    ? []
    : readdirSync(top, { withFileTypes: true }).flatMap((entry) => {
        const path = join(top, entry.name);
        if (entry.isDirectory()) return filesBeneath(path, leaveOut);
        return entry.isFile() ? [path] : [];
      });

const found = (text: string): string[] => [serviceToken, ...planted].filter((secret) => text.includes(secret));

/** Empty for a process that is gone meanwhile. */
const environmentOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1');
  } catch {
    return '';
  }
};

/** Successes and refusals of every kind, each with secrets of its own in every field that can have one. */
const everything = async (): Promise<number[]> => {
  const fields = (more: object = {}) => ({
    user,
    tool: 'sh',
    args: [plant('argument')],
    env: [`A=${plant('value')}`, `${plant('name').replaceAll('-', '_')}=x`],
    ...more,
  });
  const script = `printf '%s' "$1"; printf '%s' "$2" >&2; mkdir -p "$3"; printf x >"$3/$4"`;
  const [dir, file] = [plant('dir'), plant('file')];
  const answers = [
    await exec(fields({ args: ['-c', script, 'sh', plant('stdout'), plant('stderr'), dir, file] })),
    await exec(fields({ tool: 'git', args: ['init', plant('repository')], dir })),
    await exec(fields({ tool: 'git', args: [plant('subcommand')] })),
    await exec(fields({ tool: 'evo-workflow', agent: plant('agent') })),
    await exec(fields({ args: ['-c', `sleep 60 # ${plant('slow')}`] })),
    await exec(fields({ args: ['-c', `kill -9 $$ # ${plant('killed')}`] })),
    await exec(fields({ tool: plant('tool') })),
    await exec(fields({ tool: 'glab' })),
    await exec(fields({ dir: plant('missing') })),
    await exec(fields({ dir: `${dir}/${file}` })),
    await exec(fields({ dir: `../${plant('outside')}` })),
    await exec(fields({ agent: plant('misplaced') })),
    await exec(fields({ tool: 'evo-workflow', agent: `-${plant('wrong')}` })),
    await exec(fields({ env: [plant('no_equals_sign')] })),
    await exec(fields({ [plant('field')]: plant('unknown') })),
    await exec(fields({ user: plant('user') })),
    await exec(fields(), { 'x-header': plant('header'), 'idempotency-key': plant('key'), cookie: plant('cookie') }),
    await exec(fields(), { authorization: `Bearer ${plant('wrong-token')}` }),
    await service.client.send('POST', `/v1/${plant('path')}?${plant('query')}`, plant('body'), {
      authorization: `Bearer ${serviceToken}`,
    }),
    await service.client.send('POST', '/v1/exec', `{"${plant('broken')}`, { authorization: `Bearer ${serviceToken}` }),
  ];
  return answers.map(({ status }) => status);
};

test('after successes and refusals of every kind no content is in the audit or the log', async () => {
  const statuses = await everything();
  expect([...new Set(statuses)].sort()).toEqual([200, 400, 401, 403, 404, 500]);
  expect(planted.length).toBeGreaterThan(50);
  // All lines are out when the last one is.
  await exec({ user: user + 1, tool: 'true' });
  await service.audited((line) => line['user'] === user + 1);
  expect(service.audit.length).toBeGreaterThanOrEqual(statuses.length);
  expect(found(service.auditText.join('\n'))).toEqual([]);
  expect(service.log.length).toBeGreaterThan(4);
  expect(found(service.log.join('\n'))).toEqual([]);
});

test('nor on the disk, outside the person’s own space', () => {
  const own = filesBeneath(homeOf(service, user), []);
  // The search finds what is there.
  expect(own.flatMap((path) => found(path)).length).toBeGreaterThan(0);
  const searched = filesBeneath(service.folder, [spaceOf(service, user)]);
  expect(searched.some((path) => path.includes('.runner'))).toBe(true);
  for (const path of searched) expect(found(`${path}\n${readFileSync(path, 'latin1')}`), path).toEqual([]);
});

test('nor in anything of the person’s or the service’s in /tmp, /dev/shm or /run', () => {
  const ids = new Set([0, gatewayId, uidOf(user)]);
  const recent = Date.now() - 120_000;
  for (const top of ['/tmp', '/dev/shm', '/run']) {
    const names = existsSync(top) ? readdirSync(top) : [];
    for (const name of names) {
      const path = join(top, name);
      expect(found(path)).toEqual([]);
      const stat = lstatSync(path, { throwIfNoEntry: false });
      if (!stat?.isFile() || !ids.has(stat.uid) || stat.mtimeMs < recent || stat.size > 10_000_000) continue;
      expect(found(readFileSync(path, 'latin1')), path).toEqual([]);
    }
  }
});

test('nor in a command line or the environment of any process of the service', () => {
  const processes = treeOf(service.process.pid ?? -1);
  expect(processes.length).toBeGreaterThanOrEqual(4);
  const gateway = service.part('gateway').pid;
  const init = service.part('init').pid;
  for (const { pid, command } of processes) {
    expect(found(command), command).toEqual([]);
    // Whoever starts the gateway has to be told the token; nobody else is.
    if (pid === gateway || pid === init) continue;
    expect(found(environmentOf(pid)), command).toEqual([]);
  }
});

test('while a tool runs, its secrets are in its own command line and environment and in no other', async () => {
  const [argument, value] = [plant('running-argument'), plant('running-value')];
  const script = 'until [ -e go ]; do sleep 0.05; done';
  const running = exec({ user, tool: 'sh', args: ['-c', script, argument], env: [`SECRET=${value}`] });
  const own = await eventually('the tool', () => allProcesses().find(({ command }) => command.includes(argument)));
  expect(own.uids).toEqual([1, 1, 1, 1].map(() => uidOf(user)));
  const environments = allProcesses().flatMap(({ pid, uids }) => (environmentOf(pid).includes(value) ? [uids[0]] : []));
  expect(new Set(environments)).toEqual(new Set([uidOf(user)]));
  const others = allProcesses().filter(({ command, uids }) => command.includes(argument) && uids[0] !== uidOf(user));
  expect(others).toEqual([]);
  writeFileSync(join(homeOf(service, user), 'go'), '');
  expect((await running).status).toBe(200);
});

test('no process that is left after the runs has any of it', () => {
  for (const { command } of allProcesses()) expect(found(command)).toEqual([]);
});
