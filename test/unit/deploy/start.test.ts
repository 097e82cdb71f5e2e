import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { prepareStart } from '../../../deploy/start.ts';
import { SettingsError, settingsTable } from '../../../protocol/settings.ts';

// The gateway's part is the one that looks at nothing but its settings; what the others do beyond that needs root.

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'runner-test-worker-'));
});

afterEach(() => rmSync(folder, { recursive: true }));

const start = (given: Readonly<Record<string, string | undefined>>) => {
  const warnings: string[] = [];
  const launch = prepareStart('gateway', given, (sentence) => warnings.push(sentence));
  return { ...launch, warnings };
};

const secretFile = (name: string, content: string): string => {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
};

describe('the start of the service', () => {
  it('of the gateway executes its code with this Node.js', () => {
    const { program, args, warnings } = start({});
    expect(program).toBe(process.execPath);
    expect(args).toStrictEqual(['workspace-runner', expect.stringMatching(/\/dist\/gateway\/main\.js$/)]);
    expect(warnings).toStrictEqual([]);
  });

  it('warns of settings that this version does not know, by name alone', () => {
    const { warnings, environment } = start({
      RUNNER_TOKNE: 'planted-value',
      RUNNER_MAX_RUNS: '3',
      RUNNER_TOKEN: 'x',
      RUNNER_TOKEN_PREVIOUS: 'y',
      OTHER: 'z',
    });
    expect(warnings).toStrictEqual(['RUNNER_TOKNE is not a setting of this version and is ignored.']);
    expect(environment).not.toHaveProperty('RUNNER_TOKNE');
  });

  it('does not warn of any setting there is', () => {
    const all = Object.fromEntries(Object.keys(settingsTable).map((name) => [name, '']));
    expect(start({ ...all, RUNNER_TOKEN_FILE: '', RUNNER_TOKEN_PREVIOUS_FILE: '' }).warnings).toStrictEqual([]);
  });

  it('is refused with a sentence for each bad setting, naming it and not its value', () => {
    const given = { RUNNER_MAX_RUNS: 'planted', RUNNER_ADDR: 'planted', RUNNER_WORK_DIR: 'planted' };
    expect(() => start(given)).toThrow(SettingsError);
    for (const name of Object.keys(given)) expect(() => start(given)).toThrow(name);
    expect(() => start(given)).not.toThrow('planted');
  });
});

describe('secrets', () => {
  it.each(['RUNNER_TOKEN', 'RUNNER_TOKEN_PREVIOUS'])('%s is read from its file, which is not passed on', (name) => {
    const { environment } = start({ [`${name}_FILE`]: secretFile('token', '  from-a-file\n'), PATH: '/bin' });
    expect(environment).toStrictEqual({ PATH: '/bin', [name]: 'from-a-file' });
  });

  it.each(['RUNNER_TOKEN', 'RUNNER_TOKEN_PREVIOUS'])('%s is passed on when it is given itself', (name) => {
    expect(start({ [name]: 'given', PATH: '/bin' }).environment).toStrictEqual({ PATH: '/bin', [name]: 'given' });
  });

  it('the file wins over the variable', () => {
    const given = { RUNNER_TOKEN: 'given', RUNNER_TOKEN_FILE: secretFile('token', 'from-a-file') };
    expect(start(given).environment['RUNNER_TOKEN']).toBe('from-a-file');
  });

  it('an empty one is none', () => {
    expect(start({ RUNNER_TOKEN: '', RUNNER_TOKEN_FILE: '', PATH: '/bin' }).environment).toStrictEqual({
      PATH: '/bin',
    });
    expect(start({ RUNNER_TOKEN_FILE: secretFile('token', '\n'), PATH: '/bin' }).environment).toStrictEqual({
      PATH: '/bin',
    });
  });

  it.each(['RUNNER_TOKEN', 'RUNNER_TOKEN_PREVIOUS'])(
    'a missing file for %s is one sentence, without its path',
    (name) => {
      const given = { [`${name}_FILE`]: join(folder, 'planted-name') };
      expect(() => start(given)).toThrow(SettingsError);
      expect(() => start(given)).toThrow(new RegExp(`^${name}_FILE names a file that cannot be read\\.$`));
      expect(() => start({ [`${name}_FILE`]: folder })).toThrow(/cannot be read/);
    },
  );
});

describe('the environment of the service', () => {
  /** By hand: what may get in. */
  const wanted = {
    PATH: '/opt/bin:/bin',
    LANG: 'C.UTF-8',
    TZ: 'UTC',
    RUNNER_ADDR: ':8091',
    RUNNER_WORK_DIR: '/w',
    RUNNER_STATE_DIR: '/s',
    RUNNER_SOCKET: '/r/s.sock',
    RUNNER_GATEWAY_UID: '15000',
    RUNNER_GATEWAY_GID: '15000',
    RUNNER_EXEC_TIMEOUT_SEC: '10',
    RUNNER_MAX_OUTPUT_BYTES: '10',
    RUNNER_MAX_BODY_BYTES: '10',
    RUNNER_ALLOWED_GIT_HOSTS: 'git.example',
    RUNNER_PROTECTED_BRANCHES: 'main',
    RUNNER_GIT: '/g',
    RUNNER_GLAB: '/g',
    RUNNER_EVO_WORKFLOW: '/g',
    RUNNER_TOOLS: 'sh=/bin/sh',
    RUNNER_MAX_PROCESSES: '10',
    RUNNER_MAX_FILE_BYTES: '10',
    RUNNER_MAX_ADDRESS_BYTES: '10',
    RUNNER_MAX_RUNS: '10',
    RUNNER_USER_RANGE: '0-9',
    RUNNER_LOG_LEVEL: 'warn',
  };

  const planted = [
    'NODE_OPTIONS',
    'NODE_PATH',
    'NODE_EXTRA_CA_CERTS',
    'UV_THREADPOOL_SIZE',
    'LD_PRELOAD',
    'LD_LIBRARY_PATH',
    'MALLOC_TOP_PAD_',
    'npm_config_x',
    'npm_package_name',
    'AWS_SECRET',
    'GITLAB_TOKEN',
    'HTTP_PROXY',
    'https_proxy',
    'HOME',
    'USER',
    'SHELL',
    'BASH_ENV',
    'ENV',
    'IFS',
    'PINO_LOG',
    'LC_ALL',
    'LANGUAGE',
    'RUNNER_UNKNOWN',
    'RUNNER_',
    'runner_token',
    'RUNNER_TOKEN_FILE2',
  ];

  it('holds every setting and what a program needs to run at all, and nothing else', () => {
    const given = { ...wanted, ...Object.fromEntries(planted.map((name) => [name, 'planted'])) };
    expect(Object.keys(given).length).toBe(Object.keys(wanted).length + planted.length);
    expect(start(given).environment).toStrictEqual(wanted);
  });

  it('has a path of its own when there is none', () => {
    expect(start({}).environment).toStrictEqual({ PATH: '/usr/local/bin:/usr/bin:/bin' });
  });

  it('is not widened by names that mean something to JavaScript', () => {
    const names = ['constructor', 'toString', 'hasOwnProperty', 'valueOf', 'isPrototypeOf'];
    const given = Object.fromEntries(names.map((name) => [name, 'planted']));
    expect(Object.keys(start({ ...given, PATH: '/bin' }).environment)).toStrictEqual(['PATH']);
  });
});
