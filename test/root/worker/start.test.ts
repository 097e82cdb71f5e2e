import { chmodSync, chownSync, lstatSync, mkdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { chooseSocket } from '../../../deploy/socket.ts';
import { root } from '../../support/service.ts';
import { asUser, type Ended, ownFolder, runToEnd } from './support/as-worker.ts';

let folder: ReturnType<typeof ownFolder>;

beforeEach(() => {
  folder = ownFolder();
});

afterEach(() => folder.remove());

const gid = 19_998;

describe('the place of the socket, when the operator names none', () => {
  /** Chooses, and removes again what was made in /tmp. */
  const choose = (usual: string): { socket: string; mode: string } => {
    const socket = chooseSocket(usual, gid);
    const { mode, uid, gid: group } = lstatSync(dirname(socket));
    if (/^\/tmp\/workspace-runner-[A-Za-z0-9]{6}\/worker\.sock$/.test(socket))
      rmSync(dirname(socket), { recursive: true });
    return { socket, mode: `${mode.toString(8)} ${uid}:${group}` };
  };
  const elsewhere = {
    socket: expect.stringMatching(/^\/tmp\/workspace-runner-[A-Za-z0-9]{6}\/worker\.sock$/),
    mode: `40750 0:${gid}`,
  };

  it('is the usual one, whose folder is made', () => {
    const usual = join(folder.path, 'run', 'worker.sock');
    expect(choose(usual).socket).toBe(usual);
    expect(lstatSync(dirname(usual)).isDirectory()).toBe(true);
  });

  it('is the usual one when only a stale socket is there', async () => {
    const usual = join(folder.path, 'run', 'worker.sock');
    mkdirSync(dirname(usual));
    const bind = `require('node:net').createServer().listen(process.argv[1], () => process.kill(process.pid, 'SIGKILL'))`;
    expect(runToEnd([process.execPath, '-e', bind, usual]).signal).toBe('SIGKILL');
    expect(lstatSync(usual).isSocket()).toBe(true);
    expect(choose(usual).socket).toBe(usual);
  });

  it('is a new folder in /tmp, the gateway’s group’s to enter, when another service uses the usual one', async () => {
    const usual = join(folder.path, 'run', 'worker.sock');
    mkdirSync(dirname(usual));
    // In a process of its own: the choice waits for its probe.
    const listen = `require('node:net').createServer().listen(process.argv[1])`;
    const script = `"$0" -e "$1" "$2" & other=$!; until [ -S "$2" ]; do sleep 0.01; done; "$0" "$3" "$2"; kill $other`;
    const chooser = fileURLToPath(new URL('./support/choose-script.ts', import.meta.url));
    const { stdout } = runToEnd(['sh', '-c', script, process.execPath, listen, usual, chooser]);
    expect(JSON.parse(stdout)).toStrictEqual(elsewhere);
  });

  it('is a new folder in /tmp when the usual one cannot be written to', () => {
    const chooser = fileURLToPath(new URL('./support/choose-script.ts', import.meta.url));
    mkdirSync(join(folder.path, 'run'));
    const mount = `mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && exec "$2" "$3" "$1/worker.sock"`;
    const readOnly = [
      'unshare',
      '--mount',
      'sh',
      '-c',
      mount,
      'sh',
      join(folder.path, 'run'),
      process.execPath,
      chooser,
    ];
    expect(JSON.parse(runToEnd(readOnly).stdout)).toStrictEqual(elsewhere);
  });

  it('is a new folder in /tmp when the usual one lies beneath a file', () => {
    expect(choose('/dev/null/run/worker.sock')).toStrictEqual(elsewhere);
  });

  it('is another one for each service', () => {
    const first = choose('/dev/null/run/worker.sock').socket;
    expect(choose('/dev/null/run/worker.sock').socket).not.toBe(first);
  });
});

/** The compiled command line, as an operator starts it. */
const cli = `${root}/dist/deploy/cli.js`;

describe('the start of the whole service', () => {
  const prepared = (
    part: string,
    settings: Readonly<Record<string, string>> = {},
    as: readonly string[] = [],
  ): Ended => {
    const script = `
      const { prepareStart } = await import(process.argv[1]);
      try {
        const { program, args, environment } = prepareStart(process.argv[2], process.env, () => undefined);
        process.stdout.write(JSON.stringify({ program, args, environment }));
      } catch (error) {
        process.stdout.write(JSON.stringify({ name: error.name, message: error.message }));
      }`;
    const given = Object.entries({ RUNNER_SOCKET: join(folder.path, 'run', 's'), ...settings });
    return runToEnd([
      'env',
      ...given.map(([name, value]) => `${name}=${value}`),
      ...as,
      process.execPath,
      '--input-type=module',
      '-e',
      script,
      `${root}/dist/deploy/start.js`,
      part,
    ]);
  };

  it('becomes the native init, told the gateway’s ids and both programs', () => {
    const settings = { RUNNER_GATEWAY_UID: '15000', RUNNER_GATEWAY_GID: '15001' };
    const { stdout, stderr } = prepared('start', { ...settings, NODE_OPTIONS: '--no-warnings', LD_PRELOAD: '' });
    expect(stderr).toBe('');
    expect(JSON.parse(stdout)).toStrictEqual({
      program: `${root}/dist/helper/native/workspace-runner-native`,
      args: [
        'workspace-runner',
        'init',
        '15000',
        '15001',
        process.execPath,
        `${root}/dist/worker/main.js`,
        `${root}/dist/gateway/main.js`,
      ],
      environment: {
        PATH: expect.any(String),
        RUNNER_SOCKET: join(folder.path, 'run', 's'),
        ...settings,
      },
    });
  });

  it('of the worker alone names no gateway', () => {
    const { args } = JSON.parse(prepared('worker').stdout) as { args: string[] };
    expect(args.slice(2)).toStrictEqual(['19999', '19999', process.execPath, `${root}/dist/worker/main.js`, '-']);
  });

  it.each(['start', 'worker'])('of %s is refused to anybody but root', (part) => {
    const as = asUser(937_400, 937_400, []);
    expect(JSON.parse(prepared(part, {}, as).stdout)).toStrictEqual({
      name: 'SettingsError',
      message: expect.stringMatching(/must be started as root/),
    });
  });
});

describe('the command line', () => {
  const run = (...args: readonly string[]): Ended => runToEnd([process.execPath, cli, ...args]);

  it('tells its version and its help, and nothing else on standard output', () => {
    expect(run('--version')).toMatchObject({
      status: 0,
      stderr: '',
      stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/),
    });
    expect(run('--help')).toMatchObject({ status: 0, stderr: '', stdout: expect.stringMatching(/^Usage: /) });
  });

  it.each([['stop'], ['start', 'now'], ['worker', '--checkout'], ['gateway', '--checkout'], ['--version ']])(
    'refuses %s with its help and status 64',
    (...args) => {
      expect(run(...args)).toMatchObject({ status: 64, stdout: '', stderr: expect.stringMatching(/^Usage: /) });
    },
  );

  it('says what is wrong with the settings, each in a line of its own, and ends with status 78', () => {
    const { status, stdout, stderr } = runToEnd([
      'env',
      'RUNNER_MAX_RUNS=x',
      'RUNNER_ADDR=y',
      process.execPath,
      cli,
      'start',
    ]);
    expect({ status, stdout }).toStrictEqual({ status: 78, stdout: '' });
    expect(stderr).toMatch(/^workspace-runner: RUNNER_ADDR [^\n]+\.\nworkspace-runner: RUNNER_MAX_RUNS [^\n]+\.\n$/);
  });

  it('does not start a gateway whose user cannot read its code', () => {
    const copy = join(folder.path, 'copy');
    mkdirSync(copy);
    // Not all of dist: its cache of compiled files changes while other tests run.
    mkdirSync(join(copy, 'dist'));
    const parts = ['deploy', 'gateway', 'helper', 'protocol', 'worker'].map((part) => `${root}/dist/${part}`);
    expect(runToEnd(['cp', '-r', ...parts, join(copy, 'dist')]).status).toBe(0);
    expect(runToEnd(['cp', `${root}/package.json`, copy]).status).toBe(0);
    mkdirSync(join(copy, 'node_modules'));
    expect(runToEnd(['cp', '-r', `${root}/node_modules/zod`, join(copy, 'node_modules')]).status).toBe(0);
    chmodSync(copy, 0o700);
    chownSync(copy, 0, 0);
    const { status, stderr } = runToEnd([process.execPath, join(copy, 'dist', 'deploy', 'cli.js'), 'start']);
    expect(status).toBe(78);
    expect(stderr).toContain(`others may not pass ${copy}.`);
  });
});
