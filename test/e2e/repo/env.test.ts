import { chmodSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import { beside, done, failed, GitScene, type RepoRoute, type Work } from '../../support/git-scene.ts';
import { expectRefused, repoRoutes } from '../../support/repo-requests.ts';
import { homeOf, systemTools } from '../../support/user.ts';

const user = 622_000;
let scene: GitScene;
let work: Work;

beforeAll(async () => {
  scene = await GitScene.start(systemTools('sh'));
  work = await scene.prepared(user);
  await scene.commit(work);
});
afterAll(() => scene.stop());

const refused = (routes: readonly RepoRoute[], more: Readonly<Record<string, unknown>>, code: string) =>
  expectRefused(scene, work, routes, more, code);

/** All that could change what git does, whom it asks, or what runs beside it. */
const badEntries: readonly string[] = [
  ...['DIR', 'WORK_TREE', 'COMMON_DIR', 'INDEX_FILE', 'OBJECT_DIRECTORY', 'ALTERNATE_OBJECT_DIRECTORIES', 'NAMESPACE'],
  ...[
    'CONFIG',
    'CONFIG_GLOBAL',
    'CONFIG_SYSTEM',
    'CONFIG_NOSYSTEM',
    'CONFIG_PARAMETERS',
    'CONFIG_COUNT',
    'CONFIG_KEY_0',
    'CONFIG_VALUE_0',
  ],
  ...[
    'SSH',
    'SSH_COMMAND',
    'SSH_VARIANT',
    'PROXY_COMMAND',
    'PROXY_SSL_CERT',
    'EXEC_PATH',
    'TEMPLATE_DIR',
    'EXTERNAL_DIFF',
    'PAGER',
    'EDITOR',
    'SEQUENCE_EDITOR',
  ],
  ...[
    'SSL_NO_VERIFY',
    'SSL_CAPATH',
    'SSL_CERT',
    'SSL_KEY',
    'SSL_VERSION',
    'SSL_CIPHER_LIST',
    'HTTP_USER_AGENT',
    'HTTP_PROXY_AUTHMETHOD',
  ],
  ...[
    'ALLOW_PROTOCOL',
    'PROTOCOL',
    'PROTOCOL_FROM_USER',
    'TRACE',
    'TRACE_CURL',
    'TRACE_REDACT',
    'TRACE2',
    'TRACE2_EVENT',
    'TRACE_PACKET',
    'CURL_VERBOSE',
    'REDIRECT_STDERR',
  ],
  ...[
    'SHALLOW_FILE',
    'GRAFT_FILE',
    'REPLACE_REF_BASE',
    'NO_REPLACE_OBJECTS',
    'QUARANTINE_PATH',
    'PUSH_OPTION_COUNT',
    'PUSH_OPTION_0',
    'ATTR_SOURCE',
    'CEILING_DIRECTORIES',
    'DISCOVERY_ACROSS_FILESYSTEM',
  ],
  ...['REF_PARANOIA', 'DEFAULT_HASH', 'TEST_ASSUME_DIFFERENT_OWNER', 'ANYTHING', 'ASKPASS2', ''],
].map((name) => `GIT_${name}=x`);

const otherBadEntries: readonly string[] = [
  ...['LD_PRELOAD', 'LD_LIBRARY_PATH', 'LD_AUDIT', 'PATH', 'HOME', 'XDG_CONFIG_HOME', 'XDG_RUNTIME_DIR'],
  ...[
    'http_proxy',
    'https_proxy',
    'HTTPS_PROXY',
    'HTTP_PROXY',
    'ALL_PROXY',
    'all_proxy',
    'no_proxy',
    'NO_PROXY',
    'ftp_proxy',
  ],
  ...[
    'SSL_CERT_FILE',
    'SSL_CERT_DIR',
    'SSL_ENGINE',
    'CURL_HOME',
    'CURL_CA_BUNDLE',
    'CURL_SSL_BACKEND',
    'NODE_OPTIONS',
    'NODE_EXTRA_CA_CERTS',
  ],
].map((name) => `${name}=x`);

test.each([...badEntries, ...otherBadEntries].map((entry) => [entry]))('%s: bad_env', async (entry) => {
  await refused(['clone', 'worktree', 'push'], { env: [...scene.server.env(), entry] }, 'bad_env');
  // Also when it comes first, or without a value.
  await refused(['agent-worktree', 'agent-push'], { env: [entry.replace(/x$/, ''), ...scene.server.env()] }, 'bad_env');
});

test('an askpass program that is no absolute path, or the user’s to write: bad_env, however it is spelt', async () => {
  const home = homeOf(scene.service, user);
  await scene.sh(user, '', 'printf "#!/bin/sh\\nenv >>$HOME/canary.log\\n" >evil; chmod 755 evil');
  const folder = mkdtempSync('/tmp/runner-askpass-');
  try {
    chmodSync(folder, 0o755);
    symlinkSync(join(home, 'evil'), join(folder, 'link'));
    symlinkSync(scene.service.workDir, join(folder, 'folder'));
    const inWork = join(home, 'evil');
    for (const path of [
      '',
      'askpass',
      './askpass',
      '../askpass',
      'evil',
      '~/evil',
      inWork,
      join(home, 'not-there-yet'),
      scene.service.workDir,
      join(scene.service.workDir, 'u20007/home/evil'),
      join(folder, 'folder'),
      `/${inWork}`,
      inWork.replace('/work/', '//work/./'),
      inWork.replace('/work/', '/run/../work/'),
      `${scene.server.folder}/../${scene.server.askpass}`,
      join(folder, 'link'),
      join(folder, 'folder', `${inWork.slice(scene.service.workDir.length)}`),
      `/proc/self/root${inWork}`,
    ]) {
      const [, ...rest] = scene.server.env();
      await refused(repoRoutes, { env: [`GIT_ASKPASS=${path}`, ...rest] }, 'bad_env');
      await refused(['push'], { env: [...scene.server.env(), `GIT_ASKPASS=${path}`] }, 'bad_env');
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('an askpass program that is where git itself happens to be: bad_env', async () => {
  const [, ...rest] = scene.server.env();
  for (const path of ['/proc/self/cwd/evil', '/proc/thread-self/cwd/evil'])
    await refused(['clone', 'push'], { env: [`GIT_ASKPASS=${path}`, ...rest] }, 'bad_env');
});

test('what is accepted: without effect where the server’s own value wins, or with it', async () => {
  const accepted = [
    ...[
      'GIT_TERMINAL_PROMPT=1',
      'GIT_LFS_SKIP_SMUDGE=0',
      'GIT_HTTP_LOW_SPEED_LIMIT=1000000000',
      'GIT_HTTP_LOW_SPEED_TIME=1',
    ],
    ...['GIT_AUTHOR_NAME=A', 'GIT_AUTHOR_EMAIL=a@example.invalid', 'GIT_COMMITTER_NAME=A', 'GIT_COMMITTER_DATE=now'],
    ...['EXECX_UID=0', 'GITLAB_TOKEN=x', 'LANG=de_DE.UTF-8', 'GITHUB_X=y', 'PATHS=x', 'MY_HOME=x'],
  ];
  const env = [...scene.server.env(), ...accepted];
  const it = beside(work);
  done(await scene.worktree(it, { env }));
  done(await scene.push(it, { env }));
  for (const none of [null, []]) failed(await scene.push(it, { env: none }));
});
