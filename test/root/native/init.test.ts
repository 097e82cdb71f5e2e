import { type ChildProcess, spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { processesOf, treeOf } from '../../support/processes.ts';
import { attack, left, native, noneLeft, production } from '../../support/spawner-client.ts';
import { eventually } from '../../support/wait.ts';

const uid = 900_801;
const gateway = 1_100_801; // outside the users' range

/* What both children do: say who they are and what they got, and end as they are told. */
const child = (name: string): string => `
const { readFileSync } = require('node:fs');
const status = readFileSync('/proc/self/status', 'utf8');
const field = (name) => new RegExp('^' + name + ':[ \\\\t]*(.*)$', 'm').exec(status)[1];
const say = (what) => process.stdout.write(JSON.stringify({ from: '${name}', pid: Number(field('NSpid').split('\\t')[0]), ...what }) + '\\n');
const channel = new (require('node:net').Socket)({ fd: 3 });
const env = process.env;
channel.on('data', (bytes) => { say({ got: String(bytes) }); if (!(env.DEAF || '').includes('${name}')) process.exit(0); });
channel.on('end', () => { say({ got: 'end' }); process.exit(0); });
process.on('SIGTERM', () => undefined);
const seen = { argv: process.argv.slice(2), env: Object.keys(env).sort() };
for (const name of ['Uid', 'Gid', 'Groups', 'CapEff', 'CapPrm', 'CapInh', 'CapBnd', 'NoNewPrivs', 'SigBlk', 'Umask']) seen[name] = field(name);
say(seen);
if ((env.MISCONFIGURED || '') === '${name}') process.exit(78);
if ('${name}' === 'worker') {
  if (env.ORPHAN) {
    // A run that outlives its worker, as after a kill -9 of everything above it.
    require('node:child_process').spawn('setpriv', ['--reuid=${uid}', '--regid=${uid}', '--clear-groups', '${attack}', ...env.ORPHAN.split(' ')], { detached: true, stdio: 'ignore' }).unref();
  }
  setTimeout(() => channel.write('R'), 100);
}
if ('${name}' === 'gateway' && env.STRAY) {
  // What a taken gateway would leave behind.
  const stray = require('node:child_process').spawn('/bin/sh', ['-c', env.STRAY], { detached: true, stdio: 'ignore' });
  stray.unref();
  say({ stray: true });
}
setInterval(() => undefined, 1000);
`;

interface Said {
  readonly from: string;
  readonly got?: string;
  readonly [field: string]: unknown;
}

let folder: string;
let process_: ChildProcess | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'init-test-'));
  chmodSync(folder, 0o755);
  for (const name of ['worker', 'gateway']) writeFileSync(join(folder, `${name}.cjs`), child(name));
  copyFileSync(process.execPath, join(folder, 'node')); // where the gateway's uid can read it
  chmodSync(join(folder, 'node'), 0o755);
});
afterEach(() => {
  process_?.kill('SIGKILL');
  rmSync(folder, { recursive: true });
});

class Init {
  readonly said: Said[] = [];
  log = '';
  readonly exit: Promise<number | null>;
  readonly #unshare: ChildProcess;

  constructor(env: Record<string, string> = {}, rights: readonly string[] = production, front = 'gateway.cjs') {
    const args = [
      'init',
      `${gateway}`,
      `${gateway}`,
      join(folder, 'node'),
      join(folder, 'worker.cjs'),
      front === '-' ? front : join(folder, front),
    ];
    this.#unshare = spawn('unshare', ['--pid', '--fork', '--mount-proc', '--kill-child', ...rights, native, ...args], {
      env: {
        PATH: '/usr/bin:/bin',
        RUNNER_ADDR: ':1',
        RUNNER_TOKEN: 't',
        RUNNER_TOKEN_PREVIOUS: 'p',
        RUNNER_TOKEN_FILE: 'f',
        RUNNER_TOKEN_PREVIOUS_FILE: 'g',
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    process_ = this.#unshare;
    let rest = '';
    this.#unshare.stdout?.on('data', (text: Buffer) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) this.said.push(JSON.parse(line) as Said);
    });
    this.#unshare.stderr?.on('data', (text: Buffer) => {
      this.log += text;
    });
    this.exit = new Promise((resolve) => this.#unshare.once('exit', resolve));
  }

  /** What runs beneath init, as the host counts. */
  all(): ReturnType<typeof treeOf> {
    return treeOf(this.#unshare.pid ?? 0).filter(({ state }) => state !== 'Z');
  }

  /** As the host counts. */
  pids(name: 'init' | 'worker' | 'gateway'): number[] {
    const wanted = name === 'init' ? /-native init / : new RegExp(`${name}\\.cjs --init-channel=3$`);
    return treeOf(this.#unshare.pid ?? 0)
      .filter(({ command, state }) => state !== 'Z' && wanted.test(command) && !/^(unshare|setpriv)/.test(command))
      .filter(({ command }) => name !== 'init' || command.startsWith(native))
      .map(({ pid }) => pid);
  }

  async heard(from: string, times = 1): Promise<Said> {
    const all = () => this.said.filter((one) => one.from === from && one.got === undefined);
    await eventually(`${from} to start ${times} times`, () => all().length >= times, 30_000);
    return all()[times - 1] as Said;
  }

  signal(signal: NodeJS.Signals): void {
    process.kill(this.pids('init')[0] ?? 0, signal);
  }

  got(from: string): string[] {
    return this.said.filter((one) => one.from === from && one.got !== undefined).map(({ got }) => got ?? '');
  }
}

test.each([
  ['production rights', production],
  ['all of root\u2019s rights', []],
])('started with %s, both children have what they need and no more', async (_name, rights) => {
  const init = new Init({}, rights);
  const worker = await init.heard('worker');
  const front = await init.heard('gateway');
  const common = {
    NoNewPrivs: '1',
    SigBlk: '0'.repeat(16),
    Groups: '',
    Umask: '0077',
    CapInh: '0'.repeat(16),
    argv: ['--init-channel=3'],
  };
  const three = '00000000000000c1';
  expect(worker).toMatchObject({ ...common, Uid: '0\t0\t0\t0', CapEff: three, CapPrm: three, CapBnd: three });
  expect(worker['env']).toEqual(['PATH', 'RUNNER_ADDR']);
  const own = Array(4).fill(gateway).join('\t');
  expect(front).toMatchObject({ ...common, Uid: own, Gid: own, CapEff: '0'.repeat(16), CapPrm: '0'.repeat(16) });
  expect(front['env']).toEqual([
    'PATH',
    'RUNNER_ADDR',
    'RUNNER_TOKEN',
    'RUNNER_TOKEN_FILE',
    'RUNNER_TOKEN_PREVIOUS',
    'RUNNER_TOKEN_PREVIOUS_FILE',
  ]);
  init.signal('SIGTERM');
  expect(await init.exit).toBe(0);
  expect([init.got('gateway'), init.got('worker')]).toEqual([['D'], ['D']]);
  expect(init.said.findIndex(({ from, got }) => from === 'gateway' && got === 'D')).toBeLessThan(
    init.said.findIndex(({ from, got }) => from === 'worker' && got === 'D'),
  );
});

test('a gateway that does not drain is killed as its uid, and then a worker', async () => {
  const init = new Init({ DEAF: 'gateway worker' });
  await init.heard('gateway');
  const start = performance.now();
  init.signal('SIGINT');
  expect(await init.exit).toBe(0);
  expect(performance.now() - start).toBeGreaterThan(4_400);
  expect(performance.now() - start).toBeLessThan(6_500);
});

test('a second signal waits for no drain', async () => {
  const init = new Init({ DEAF: 'gateway worker' });
  await init.heard('gateway');
  const start = performance.now();
  init.signal('SIGTERM');
  await eventually('the drain', () => init.got('gateway').length === 1);
  init.signal('SIGTERM');
  expect(await init.exit).toBe(0);
  expect(performance.now() - start).toBeLessThan(1_400);
});

test.each(['worker', 'gateway'] as const)('a dead %s is started again, the other one is left alone', async (name) => {
  const init = new Init();
  await init.heard('gateway');
  const other = name === 'worker' ? 'gateway' : 'worker';
  const kept = init.pids(other);
  process.kill(init.pids(name)[0] ?? 0, 'SIGKILL');
  await init.heard(name, 2);
  expect(init.pids(other)).toEqual(kept);
  expect(init.log).toBe(`workspace-runner init: the ${name} died and will be started again\n`);
  init.signal('SIGTERM');
  expect(await init.exit).toBe(0);
});

const strays = (init: Init) =>
  init.all().filter(({ uids, command }) => uids[0] === gateway && !command.includes('cjs'));

test('what a gateway started does not outlive it: it could stand in for the next one', async () => {
  const init = new Init({ STRAY: 'sleep 1300 & sleep 1300' });
  await eventually('the strays', () => strays(init).length === 3, 20_000);
  const first = strays(init).map(({ pid }) => pid);
  process.kill(init.pids('gateway')[0] ?? 0, 'SIGKILL');
  await init.heard('gateway', 3); // the first one, its stray's word, the second one
  expect(init.all().filter(({ pid }) => first.includes(pid))).toEqual([]);
  init.signal('SIGTERM');
  expect(await init.exit).toBe(0);
  expect(init.all()).toEqual([]);
});

test('what stops everything of the gateway\u2019s uid, over and over, does not stop init', async () => {
  const init = new Init({ STRAY: 'while :; do kill -STOP -1; done' });
  await eventually(
    'the gateway stands still',
    () => {
      const [pid] = init.pids('gateway');
      return init.all().some((one) => one.pid === pid && one.state === 'T');
    },
    20_000,
  );
  const start = performance.now();
  init.signal('SIGTERM');
  expect(await init.exit).toBe(0);
  expect(performance.now() - start).toBeLessThan(6_500);
  expect(init.all()).toEqual([]);
});

test('a worker alone has no gateway started beside it', async () => {
  const init = new Init({}, production, '-');
  await init.heard('worker');
  process.kill(init.pids('worker')[0] ?? 0, 'SIGKILL');
  await init.heard('worker', 2);
  expect(init.said.filter(({ from }) => from === 'gateway')).toEqual([]);
  expect(init.all().filter(({ uids }) => uids[0] === gateway)).toEqual([]);
  init.signal('SIGTERM');
  expect(await init.exit).toBe(0);
});

test.each(['worker', 'gateway'] as const)('a %s that says its configuration is wrong stops all', async (name) => {
  const init = new Init({ MISCONFIGURED: name });
  expect(await init.exit).toBe(78);
  expect(init.said.filter(({ from, got }) => from === name && got === undefined).length).toBe(1);
});

test.each(['daemons', 'chains 3'])('what a dead worker left (%s) is gone before the next one starts', async (way) => {
  const init = new Init({ ORPHAN: way });
  await init.heard('gateway');
  await eventually('the run', () => left(uid).length > 3);
  const before = new Set(processesOf(uid).map(({ pid }) => pid));
  process.kill(init.pids('worker')[0] ?? 0, 'SIGKILL');
  await init.heard('worker', 2);
  expect(processesOf(uid).filter(({ pid }) => before.has(pid))).toEqual([]);
  init.signal('SIGTERM');
  await init.exit;
  await noneLeft(uid);
});

test('an earlier life\u2019s processes are ended at start; those of a uid without a space are somebody else\u2019s', async () => {
  const other = uid + 1;
  mkdirSync(join(folder, `u${uid}`));
  chownSync(join(folder, `u${uid}`), uid, uid);
  const stranger = spawn('setpriv', [`--reuid=${other}`, `--regid=${other}`, '--clear-groups', attack, 'daemons'], {
    stdio: 'ignore',
    detached: true,
  });
  await eventually('the stranger', () => left(other).length === 9);
  const early = spawn('setpriv', [`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', attack, 'daemons'], {
    stdio: 'ignore',
    detached: true,
  });
  await eventually('the early ones', () => left(uid).length === 9);
  // Not in a namespace of its own this time: it must see what was there before it.
  const args = [
    'init',
    `${gateway}`,
    `${gateway}`,
    join(folder, 'node'),
    join(folder, 'worker.cjs'),
    join(folder, 'gateway.cjs'),
  ];
  const started = spawn(production[0], [...production.slice(1), native, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, RUNNER_WORK_DIR: folder },
  });
  const gone = new Promise((resolve) => started.once('exit', resolve));
  await new Promise((resolve) => started.stdout?.once('data', resolve));
  expect(left(uid).filter((line) => !line.startsWith('Z'))).toEqual([]);
  expect(left(other).length).toBe(9);
  started.kill('SIGTERM');
  expect(await gone).toBe(0);
  early.kill('SIGKILL');
  stranger.kill('SIGKILL');
  for (const { pid } of processesOf(other)) process.kill(pid, 'SIGKILL');
});

test('other signals do nothing, and its own death ends its children', async () => {
  const init = new Init();
  await init.heard('gateway');
  for (const signal of ['SIGHUP', 'SIGQUIT', 'SIGPIPE', 'SIGUSR1', 'SIGUSR2'] as const) init.signal(signal);
  const [worker, front] = [init.pids('worker'), init.pids('gateway')];
  process.kill(init.pids('init')[0] ?? 0, 'SIGKILL');
  await init.exit;
  await eventually('no child', () => [...worker, ...front].every((pid) => !readable(pid)));
});

const readable = (pid: number): boolean => {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
};

test.each([
  ['root', '0'],
  ['a user', '20000'],
  ['a killer', `${0x4000_0001}`],
  ['no number', '1x'],
])('refuses %s as the gateway', async (_what, id) => {
  const started = spawn(native, ['init', id, id, '/bin/false', 'x', 'y'], { stdio: ['ignore', 'ignore', 'pipe'] });
  expect(await new Promise((resolve) => started.once('exit', resolve))).toBe(64);
});
