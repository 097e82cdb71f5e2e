import { describe, expect, it } from 'vitest';
import { repositoryEnvironment } from '../../../protocol/operations/repo-fields.ts';

describe('the environment', () => {
  const takes = (...entries: readonly string[]): boolean => repositoryEnvironment.safeParse(entries).success;

  it.each([
    ...['GIT_AUTHOR_NAME', 'GIT_AUTHOR_EMAIL', 'GIT_AUTHOR_DATE', 'GIT_COMMITTER_NAME', 'GIT_COMMITTER_EMAIL'],
    ...['GIT_COMMITTER_DATE', 'GIT_TERMINAL_PROMPT', 'GIT_LFS_SKIP_SMUDGE', 'GIT_HTTP_LOW_SPEED_LIMIT'],
    ...[
      'GIT_HTTP_LOW_SPEED_TIME',
      'GITLAB_TOKEN',
      'TOKEN',
      'LANG',
      'LC_ALL',
      'TZ',
      'EXECX_X',
      'GITX',
      'MY_PATH',
      '_',
      'PROXY',
    ],
  ])('may have %s', (key) => {
    expect(takes(`${key}=x`), key).toBe(true);
    expect(takes(`${key}=`), key).toBe(true);
  });

  it.each([
    ...['GIT_DIR', 'GIT_WORK_TREE', 'GIT_INDEX_FILE', 'GIT_OBJECT_DIRECTORY', 'GIT_ALTERNATE_OBJECT_DIRECTORIES'],
    ...[
      'GIT_NAMESPACE',
      'GIT_COMMON_DIR',
      'GIT_CEILING_DIRECTORIES',
      'GIT_CONFIG',
      'GIT_CONFIG_GLOBAL',
      'GIT_CONFIG_SYSTEM',
    ],
    ...['GIT_CONFIG_NOSYSTEM', 'GIT_CONFIG_COUNT', 'GIT_CONFIG_KEY_0', 'GIT_CONFIG_VALUE_0', 'GIT_CONFIG_PARAMETERS'],
    ...[
      'GIT_SSH',
      'GIT_SSH_COMMAND',
      'GIT_SSH_VARIANT',
      'GIT_PROXY_COMMAND',
      'GIT_EXTERNAL_DIFF',
      'GIT_EXEC_PATH',
      'GIT_PAGER',
    ],
    ...[
      'GIT_EDITOR',
      'GIT_SEQUENCE_EDITOR',
      'GIT_TEMPLATE_DIR',
      'GIT_ALLOW_PROTOCOL',
      'GIT_PROTOCOL',
      'GIT_PROTOCOL_FROM_USER',
    ],
    ...['GIT_SSL_NO_VERIFY', 'GIT_SSL_CAPATH', 'GIT_SSL_CERT', 'GIT_SSL_KEY', 'GIT_SSL_VERSION', 'GIT_HTTP_USER_AGENT'],
    ...[
      'GIT_HTTP_PROXY_AUTHMETHOD',
      'GIT_PROXY_SSL_CAINFO',
      'GIT_TRACE',
      'GIT_TRACE_CURL',
      'GIT_TRACE2_EVENT',
      'GIT_CURL_VERBOSE',
    ],
    ...[
      'GIT_REPLACE_REF_BASE',
      'GIT_NO_REPLACE_OBJECTS',
      'GIT_GRAFT_FILE',
      'GIT_SHALLOW_FILE',
      'GIT_ATTR_SOURCE',
      'GIT_',
    ],
    ...[
      'GIT_ASKPASS2',
      'GIT_AUTHOR_',
      'GIT_AUTHOR',
      'git_askpass',
      'Git_Dir',
      'GIT_LFS_SKIP_SMUDGE2',
      'GIT_TERMINAL_PROMPT_X',
    ],
  ])('never has %s', (key) => {
    expect(takes(`${key}=/bin/true`), key).toBe(false);
  });

  it.each([
    ...[
      'LD_PRELOAD',
      'LD_LIBRARY_PATH',
      'LD_AUDIT',
      'PATH',
      'HOME',
      'XDG_CONFIG_HOME',
      'XDG_X',
      'http_proxy',
      'https_proxy',
    ],
    ...[
      'HTTP_PROXY',
      'HTTPS_PROXY',
      'ALL_PROXY',
      'no_proxy',
      'SSL_CERT_FILE',
      'SSL_CERT_DIR',
      'CURL_CA_BUNDLE',
      'CURL_HOME',
    ],
    ...[
      'NODE_OPTIONS',
      'NODE_EXTRA_CA_CERTS',
      'SSH_ASKPASS',
      'SSH_AUTH_SOCK',
      'OPENSSL_CONF',
      'SSLKEYLOGFILE',
      'path',
      'Home',
    ],
    ...[
      'GNUTLS_SYSTEM_PRIORITY_FILE',
      'GCONV_PATH',
      'LOCPATH',
      'HOSTALIASES',
      'LOCALDOMAIN',
      'RES_OPTIONS',
      'ld_preload',
    ],
    ...[
      'ENV',
      'BASH_ENV',
      'BASH_XTRACEFD',
      'SHELLOPTS',
      'PYTHONPATH',
      'PYTHONSTARTUP',
      'PERL5LIB',
      'PERL5OPT',
      'RUBYOPT',
    ],
  ])('never has %s either', (key) => {
    expect(takes(`${key}=x`), key).toBe(false);
  });

  it.each(['GIT_ASKPASS', 'GIT_SSL_CAINFO'])('has %s as an absolute path without ".." only', (key) => {
    for (const path of ['/usr/bin/askpass', '/a..b/...', '/a/.b', '/'])
      expect(takes(`${key}=${path}`), path).toBe(true);
    for (const path of [
      '',
      'askpass',
      './a',
      'a/b',
      '../a',
      '/..',
      '/a/..',
      '/../a',
      '/a/../b',
      ' /a',
      '~/a',
      '/a\n/../b',
    ])
      expect(takes(`${key}=${path}`), path).toBe(false);
  });

  it('is refused for one bad entry among good ones, and in any place', () => {
    expect(takes('A=1', 'TOKEN=x=y', 'GIT_ASKPASS=/a')).toBe(true);
    expect(takes('GIT_DIR=/x', 'A=1')).toBe(false);
    expect(takes('A=1', 'B=2', 'HOME=/x')).toBe(false);
    expect(takes('GIT_ASKPASS=/a', 'GIT_ASKPASS=b')).toBe(false);
  });
});
