import { describe, expect, it } from 'vitest';
import { repositoryEnvironment } from '../../../../protocol/operations/repo-fields.ts';
import { gitEnvironment, type Transport } from '../../../../worker/git/environment.ts';

const keyOf = (entry: string): string => entry.slice(0, entry.indexOf('='));
const variablesOf = (transport: Transport, entries: readonly string[] = []): Record<string, string> =>
  Object.fromEntries(
    gitEnvironment('/w/u20007', transport, entries).map((entry) => [
      keyOf(entry),
      entry.slice(keyOf(entry).length + 1),
    ]),
  );

/** Configuration over every file, by hand. */
const configuration = {
  'core.hooksPath': '/dev/null',
  'core.fsmonitor': 'false',
  'core.pager': 'cat',
  'core.askPass': '',
  'credential.helper': '',
  'http.followRedirects': 'false',
  'http.proxy': '',
  'transfer.bundleURI': 'false',
  'fetch.writeCommitGraph': 'false',
  'submodule.recurse': 'false',
  'push.gpgSign': 'false',
  'core.commitGraph': 'false',
  'core.multiPackIndex': 'false',
  'pack.useBitmaps': 'false',
  'worktree.useRelativePaths': 'false',
  'gc.auto': '0',
  'gc.autoDetach': 'false',
  'maintenance.auto': 'false',
};

/** The other variables, by hand. */
const fixed = {
  PATH: '/usr/local/bin:/usr/bin:/bin',
  LANG: 'C.UTF-8',
  HOME: '/w/u20007/tmp/.git-workflow/home',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_SYSTEM: '/dev/null',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_ATTR_NOSYSTEM: '1',
  GIT_CONFIG_COUNT: '18',
  GIT_CEILING_DIRECTORIES: '/w/u20007/tmp',
  GIT_NO_REPLACE_OBJECTS: '1',
  GIT_NO_LAZY_FETCH: '1',
  GIT_OPTIONAL_LOCKS: '0',
  GIT_TERMINAL_PROMPT: '0',
  GIT_LFS_SKIP_SMUDGE: '1',
  GIT_HTTP_LOW_SPEED_LIMIT: '1',
  GIT_HTTP_LOW_SPEED_TIME: '60',
};

describe('the environment of a git command', () => {
  it.each<Transport>(['https', 'file', 'none'])('with the transport %s is as restated', (transport) => {
    const variables = variablesOf(transport);
    const told = Object.fromEntries(
      Array.from({ length: Number(variables['GIT_CONFIG_COUNT']) }, (_, index) => [
        variables[`GIT_CONFIG_KEY_${index}`],
        variables[`GIT_CONFIG_VALUE_${index}`],
      ]),
    );
    expect(told).toStrictEqual(configuration);
    const others = Object.entries(variables).filter(([key]) => !/^GIT_CONFIG_(KEY|VALUE)_\d+$/.test(key));
    expect(Object.fromEntries(others)).toStrictEqual({
      ...fixed,
      GIT_ALLOW_PROTOCOL: transport === 'none' ? '' : transport,
    });
    expect(Object.keys(variables)).toHaveLength(Object.keys(fixed).length + 1 + 2 * 18);
  });

  it('is the server’s, whatever a request says, also twice', () => {
    const own = gitEnvironment('/w/u20007', 'https', []);
    const evil = own.flatMap((entry) => [`${keyOf(entry)}=evil`, `${keyOf(entry)}=worse`]);
    expect(gitEnvironment('/w/u20007', 'https', evil).sort()).toStrictEqual([...own].sort());
  });

  it('has the request’s other entries, the last one of each, and no name twice', () => {
    const entries = ['TOKEN=first', 'A=b=c', 'TOKEN=last', 'GIT_ASKPASS=/usr/bin/askpass', 'B='];
    const variables = gitEnvironment('/w/u20007', 'https', entries);
    for (const entry of ['TOKEN=last', 'A=b=c', 'GIT_ASKPASS=/usr/bin/askpass', 'B='])
      expect(variables).toContain(entry);
    const keys = variables.map(keyOf);
    expect(new Set(keys).size).toBe(keys.length);
    expect(variables).toHaveLength(gitEnvironment('/w/u20007', 'https', []).length + 4);
  });

  it('trusts no authority of the system’s beside one that the request names', () => {
    const named = variablesOf('https', ['GIT_SSL_CAINFO=/etc/authority.pem']);
    expect(named['GIT_SSL_CAPATH']).toBe(fixed.HOME);
    expect(variablesOf('https', ['XGIT_SSL_CAINFO=/etc/authority.pem'])).not.toHaveProperty('GIT_SSL_CAPATH');
  });

  it('has none of what is reserved', () => {
    const own = gitEnvironment('/w/u20007', 'https', []);
    expect(gitEnvironment('/w/u20007', 'https', ['EXECX_UID=0', 'EXECX_=1'])).toStrictEqual(own);
    expect(gitEnvironment('/w/u20007', 'https', ['EXEC=1'])).toHaveLength(own.length + 1);
  });

  it('has every variable of git’s that a request may bring, or the server’s own', () => {
    for (const key of [
      'GIT_TERMINAL_PROMPT',
      'GIT_LFS_SKIP_SMUDGE',
      'GIT_HTTP_LOW_SPEED_LIMIT',
      'GIT_HTTP_LOW_SPEED_TIME',
    ]) {
      expect(repositoryEnvironment.safeParse([`${key}=9`]).success).toBe(true);
      expect(variablesOf('https', [`${key}=9`])[key]).not.toBe('9');
    }
    for (const key of ['GIT_ASKPASS', 'GIT_SSL_CAINFO', 'GIT_AUTHOR_NAME', 'GIT_COMMITTER_EMAIL'])
      expect(variablesOf('https', [`${key}=/9`])[key]).toBe('/9');
  });
});
