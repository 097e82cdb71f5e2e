import { describe, expect, it } from 'vitest';
import { frameBytesMax } from '../../../protocol/limits.ts';
import { readSettings, type SettingName, SettingsError, settingsTable } from '../../../protocol/settings.ts';

const names = Object.keys(settingsTable) as SettingName[];
const read = (name: SettingName, value: string | undefined): unknown => readSettings({ [name]: value }, [name])[name];
const problem = (name: SettingName, value: string): string => {
  try {
    read(name, value);
  } catch (error) {
    if (error instanceof SettingsError) return error.message;
    throw error;
  }
  throw new Error(`${name} took a bad value`);
};

/** The specification's table by hand. */
const defaults: Record<SettingName, unknown> = {
  RUNNER_ADDR: { host: undefined, port: 8090 },
  RUNNER_WORK_DIR: '/work',
  RUNNER_STATE_DIR: undefined,
  RUNNER_SOCKET: '/run/workspace-runner/worker.sock',
  RUNNER_GATEWAY_UID: 19999,
  RUNNER_GATEWAY_GID: 19999,
  RUNNER_EXEC_TIMEOUT_SEC: 120,
  RUNNER_MAX_OUTPUT_BYTES: 262_144,
  RUNNER_MAX_BODY_BYTES: 1_048_576,
  RUNNER_MAX_WRITE_BYTES: 262_144,
  RUNNER_FILE_TIMEOUT_SEC: 30,
  RUNNER_RESET_TIMEOUT_SEC: 300,
  RUNNER_ALLOWED_GIT_HOSTS: [],
  RUNNER_PROTECTED_BRANCHES: ['main', 'master', 'develop', 'release/*'],
  RUNNER_GIT: undefined,
  RUNNER_GLAB: undefined,
  RUNNER_EVO_WORKFLOW: undefined,
  RUNNER_TOOLS: new Map(),
  RUNNER_USER_QUOTA_BYTES: 10 * 1024 ** 3,
  RUNNER_MAX_PROCESSES: 128,
  RUNNER_MAX_FILE_BYTES: 1024 ** 3,
  RUNNER_MAX_ADDRESS_BYTES: 0,
  RUNNER_MAX_RUNS: 64,
  RUNNER_MAX_PROCESS_HANDLES: 256,
  RUNNER_PROCESS_TIMEOUT_SEC: 3600,
  RUNNER_PROCESS_RETAIN_BYTES: 1_048_576,
  RUNNER_PROCESS_RETAIN_SEC: 600,
  RUNNER_HELPERS_STANDBY: 2,
  RUNNER_HELPERS_MAX: 16,
  RUNNER_HELPERS_IDLE_SEC: 60,
  RUNNER_USER_RANGE: { first: 0, last: 1_000_000 },
  RUNNER_LEDGER_RETAIN_DAYS: 7,
  RUNNER_LOG_LEVEL: 'info',
};

const numbers = [
  '-1',
  '+1',
  '1.5',
  '1e3',
  '0x10',
  ' 1',
  '1 ',
  '1\n',
  '1_000',
  'x',
  'NaN',
  'Infinity',
  '١',
  '9007199254740993',
  '99999999999999999999',
];
const paths = ['relative/path', './x', '~', 'x', '/a/../b', '/..', '../x', '/a\0b', ' /a'];
const bad: Record<SettingName, readonly string[]> = {
  RUNNER_ADDR: [
    '8090',
    'host',
    'host:',
    ':',
    ':x',
    ':65536',
    ':99999',
    ':123456',
    ':-1',
    '::1:80',
    '[::1]',
    '[x]:80',
    'a:b:80',
    '[::1:80',
    ':80 ',
  ],
  RUNNER_WORK_DIR: paths,
  RUNNER_STATE_DIR: paths,
  RUNNER_SOCKET: [...paths, `/${'x'.repeat(80)}`, `/${'ä'.repeat(40)}`],
  RUNNER_GATEWAY_UID: [...numbers, '0', '20000', '500000', '1020000', '1073741824'],
  RUNNER_GATEWAY_GID: [...numbers, '0', '20000', '500000', '1020000', '1073741824'],
  RUNNER_EXEC_TIMEOUT_SEC: [...numbers, '0', '86401'],
  RUNNER_MAX_OUTPUT_BYTES: [...numbers, '4194304', '1048576', '700000'],
  RUNNER_MAX_BODY_BYTES: [...numbers, '0', '4194304', '4194305'],
  RUNNER_MAX_WRITE_BYTES: [...numbers, '4194304', '688129'],
  RUNNER_FILE_TIMEOUT_SEC: [...numbers, '0', '86401'],
  RUNNER_RESET_TIMEOUT_SEC: [...numbers, '0', '86401'],
  RUNNER_ALLOWED_GIT_HOSTS: [
    'https://host',
    'host/group',
    'user@host',
    'host:',
    'host:x',
    'host:123456',
    ' host',
    'host ',
    'a b',
    'a;b',
    'a,,b',
    ',a',
    '*.host',
    '::1',
    '[::1',
    '[x]',
    'h\u00f6st',
    'host\n',
  ],
  RUNNER_PROTECTED_BRANCHES: ['*', '/*', 'a*', 'release/**', 'a/*/b', 'a b', ' a', 'a\n', 'a,,b', ',a', 'main, master'],
  RUNNER_GIT: paths,
  RUNNER_GLAB: paths,
  RUNNER_EVO_WORKFLOW: paths,
  RUNNER_TOOLS: [
    'rg',
    'rg=',
    'rg=rg',
    '=/usr/bin/rg',
    'r g=/usr/bin/rg',
    'rg=/a,rg=/b',
    'git=/a',
    'glab=/a',
    'evo-workflow=/a',
    'a/b=/c',
    ' rg=/a',
    'rg=/a\0',
    'rg:/a',
    `${'x'.repeat(65)}=/a`,
    'a=/b,c',
  ],
  RUNNER_USER_QUOTA_BYTES: [...numbers, '9007199254740992'],
  RUNNER_MAX_PROCESSES: [...numbers, '4000001'],
  RUNNER_MAX_FILE_BYTES: numbers,
  RUNNER_MAX_ADDRESS_BYTES: numbers,
  RUNNER_MAX_RUNS: [...numbers, '0', '1001'],
  RUNNER_MAX_PROCESS_HANDLES: [...numbers, '0', '4097'],
  RUNNER_PROCESS_TIMEOUT_SEC: [...numbers, '0', '604801'],
  RUNNER_PROCESS_RETAIN_BYTES: [...numbers, '4095', '1073741825'],
  RUNNER_PROCESS_RETAIN_SEC: [...numbers, '0', '86401'],
  RUNNER_HELPERS_STANDBY: [...numbers, '65'],
  RUNNER_HELPERS_MAX: [...numbers, '0', '513'],
  RUNNER_HELPERS_IDLE_SEC: [...numbers, '0', '86401'],
  RUNNER_USER_RANGE: [
    '1',
    '1-',
    '-1',
    '5-3',
    '0-1000001',
    '1000001-1000002',
    '1-2-3',
    'a-b',
    '1 - 2',
    ' 1-2',
    '1.5-2',
    '0x1-2',
    'All',
    'none',
    '1-2\n',
  ],
  RUNNER_LEDGER_RETAIN_DAYS: [...numbers, '0', '3651'],
  RUNNER_LOG_LEVEL: ['loud', 'INFO', 'silent', 'info ', '30'],
};

describe('every setting', () => {
  it('is restated here', () => {
    expect(Object.keys(defaults).sort()).toStrictEqual([...names].sort());
  });

  it.each(names)('%s has its default when unset or empty', (name) => {
    expect(read(name, undefined)).toStrictEqual(defaults[name]);
    expect(read(name, '')).toStrictEqual(defaults[name]);
    expect(readSettings({}, names)).toStrictEqual(defaults);
  });

  it.each(names)('%s refuses bad values by name', (name) => {
    for (const value of bad[name]) {
      const message = problem(name, value);
      expect(message, value).toMatch(new RegExp(`^${name} .+\\.$`));
    }
  });

  it.each(names)('%s tells no value', (name) => {
    const secret = 'pl4nted-s3cret';
    const values = [secret, `${secret}/..`, `git=/${secret}`, `0-${secret}`, `${secret}\0:80`, `${secret}:99999`];
    // A host and a branch may be called so.
    const isName = name === 'RUNNER_ALLOWED_GIT_HOSTS' || name === 'RUNNER_PROTECTED_BRANCHES';
    for (const value of isName ? [`${secret} `, `*${secret}`, `main,,${secret}`] : values)
      expect(problem(name, value)).not.toContain(secret);
  });

  it('is told with all the others that are wrong', () => {
    const environment = Object.fromEntries(names.map((name) => [name, bad[name][0]]));
    expect(() => readSettings(environment, names)).toThrow(SettingsError);
    const lines = ((): string[] => {
      try {
        readSettings(environment, names);
      } catch (error) {
        return (error as Error).message.split('\n');
      }
      return [];
    })();
    expect(lines.map((line) => line.split(' ')[0])).toStrictEqual(names);
  });

  it('is looked at only when it is asked for', () => {
    expect(readSettings({ RUNNER_MAX_RUNS: 'x', RUNNER_WORK_DIR: '/srv' }, ['RUNNER_WORK_DIR'])).toStrictEqual({
      RUNNER_WORK_DIR: '/srv',
    });
  });
});

describe('good values', () => {
  it.each<readonly [SettingName, string, unknown]>([
    ['RUNNER_ADDR', ':0', { host: undefined, port: 0 }],
    ['RUNNER_ADDR', ':65535', { host: undefined, port: 65_535 }],
    ['RUNNER_ADDR', '127.0.0.1:80', { host: '127.0.0.1', port: 80 }],
    ['RUNNER_ADDR', 'runner.internal:8090', { host: 'runner.internal', port: 8090 }],
    ['RUNNER_ADDR', '[::1]:8090', { host: '::1', port: 8090 }],
    ['RUNNER_ADDR', '[::ffff:127.0.0.1]:1', { host: '::ffff:127.0.0.1', port: 1 }],
    ['RUNNER_WORK_DIR', '/srv/work', '/srv/work'],
    ['RUNNER_WORK_DIR', '/a..b/...', '/a..b/...'],
    ['RUNNER_STATE_DIR', '/var/lib/x', '/var/lib/x'],
    ['RUNNER_SOCKET', `/${'x'.repeat(79)}`, `/${'x'.repeat(79)}`],
    ['RUNNER_GATEWAY_UID', '1', 1],
    ['RUNNER_GATEWAY_UID', '1020001', 1_020_001],
    ['RUNNER_GATEWAY_GID', '1073741823', 1_073_741_823],
    ['RUNNER_EXEC_TIMEOUT_SEC', '1', 1],
    ['RUNNER_EXEC_TIMEOUT_SEC', '86400', 86_400],
    ['RUNNER_MAX_OUTPUT_BYTES', '0', 0],
    ['RUNNER_MAX_BODY_BYTES', '1', 1],
    ['RUNNER_ALLOWED_GIT_HOSTS', 'gitlab.example.org', ['gitlab.example.org']],
    ['RUNNER_ALLOWED_GIT_HOSTS', 'GitLab.Example.ORG', ['gitlab.example.org']],
    ['RUNNER_ALLOWED_GIT_HOSTS', 'a:443,b:8443,', ['a', 'b:8443']],
    ['RUNNER_ALLOWED_GIT_HOSTS', '[::1]:8443,[FE80::1]', ['[::1]:8443', '[fe80::1]']],
    ['RUNNER_PROTECTED_BRANCHES', 'main', ['main']],
    ['RUNNER_PROTECTED_BRANCHES', 'main,hotfix/*,a/b/*,', ['main', 'hotfix/*', 'a/b/*']],
    ['RUNNER_GIT', '/usr/bin/git', '/usr/bin/git'],
    ['RUNNER_TOOLS', 'rg=/usr/bin/rg', new Map([['rg', '/usr/bin/rg']])],
    [
      'RUNNER_TOOLS',
      'rg=/a,jq=/b=c',
      new Map([
        ['rg', '/a'],
        ['jq', '/b=c'],
      ]),
    ],
    ['RUNNER_TOOLS', `${'x'.repeat(64)}=/a`, new Map([['x'.repeat(64), '/a']])],
    ['RUNNER_MAX_PROCESSES', '0', 0],
    ['RUNNER_MAX_FILE_BYTES', '9007199254740991', Number.MAX_SAFE_INTEGER],
    ['RUNNER_MAX_RUNS', '1000', 1000],
    ['RUNNER_USER_RANGE', 'all', { first: 0, last: 1_000_000 }],
    ['RUNNER_USER_RANGE', '0-0', { first: 0, last: 0 }],
    ['RUNNER_USER_RANGE', '500000-1000000', { first: 500_000, last: 1_000_000 }],
    ['RUNNER_LOG_LEVEL', 'trace', 'trace'],
    ['RUNNER_LOG_LEVEL', 'fatal', 'fatal'],
  ])('%s takes %j', (name, value, expected) => {
    expect(read(name, value)).toStrictEqual(expected);
  });
});

describe('what could make a message larger than a frame', () => {
  /** The largest value that a setting takes, found by halving. */
  const largest = (name: SettingName): number => {
    let [taken, refused] = [1, 2 ** 40];
    while (refused - taken > 1) {
      const middle = Math.floor((taken + refused) / 2);
      try {
        read(name, String(middle));
        taken = middle;
      } catch {
        refused = middle;
      }
    }
    return taken;
  };
  const room = frameBytesMax - 16 * 1024;

  it('is refused for outputs: two of them, every byte of which became U+FFFD', () => {
    const bytes = largest('RUNNER_MAX_OUTPUT_BYTES');
    expect(bytes * 2 * Buffer.byteLength('\ufffd')).toBeLessThanOrEqual(room);
    expect(bytes).toBeGreaterThanOrEqual(600_000);
  });

  it('is refused for bodies, which are no longer on the link than as JSON', () => {
    const bytes = largest('RUNNER_MAX_BODY_BYTES');
    expect(bytes).toBeLessThanOrEqual(room);
    expect(bytes).toBeGreaterThanOrEqual(1_048_576);
  });
});
