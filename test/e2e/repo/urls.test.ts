import { afterAll, beforeAll, expect, test } from 'vitest';
import { unreached } from '../../support/counting-server.ts';
import { done, GitScene, refusal } from '../../support/git-scene.ts';
import { allProcesses } from '../../support/processes.ts';
import { spaceOf, uidOf } from '../../support/user.ts';

const user = 612_000;
let scene: GitScene;

beforeAll(async () => {
  scene = await GitScene.start();
  scene.server.repository('group/project').commit('main', { 'a.txt': 'a\n' });
});
afterAll(() => scene.stop());

/** A URL as it is written here: A is the allowed `host:port`, P its port, C the port that nobody may reach. */
const written = (text: string): string =>
  text
    .replaceAll('{A}', scene.server.host)
    .replaceAll('{P}', String(scene.server.port))
    .replaceAll('{C}', String(scene.counting.port));

const good = 'https://{A}/group/project.git';

const notURLs: readonly string[] = [
  '',
  ' ',
  'https://',
  'https:///',
  'https://{A}',
  'https://{A}/',
  'https://{A}/project.git',
  'https://{A}/group/',
  'https://{A}/group//project.git',
  'https://{A}//group/project.git',
  'https://{A}/group/project.git/',
  'https://{A}/group/.git',
  'https://{A}/group/.',
  'https://{A}/./project',
  'https://{A}/.git/project',
  'https://{A}/-group/project',
  'https://{A}/group/-project',
  '{A}/group/project.git',
  '//{A}/group/project.git',
  'https:/{A}/group/project.git',
  'https:{A}/group/project.git',
  'https:\\\\{A}\\group\\project.git',
  'https://{A}\\group\\project.git',
  'https://{A}\\@127.0.0.1:{C}/group/project.git',
  '/etc/passwd',
  '../group/project',
  '--upload-pack=touch /tmp/x',
  '-c',
  // Transports that are no URLs.
  'ext::sh -c id% >&2',
  'ext::sh',
  'fd::17',
  'transport::https://{A}/group/project.git',
  '127.0.0.1:group/project.git',
  // Userinfo.
  'https://user@{A}/group/project.git',
  'https://user:token@{A}/group/project.git',
  'https://:@{A}/group/project.git',
  'https://@{A}/group/project.git',
  'https://{A}@127.0.0.1:{C}/group/project.git',
  'https://{A}/group@x/project.git',
  'https://127.0.0.1:{C}#@{A}/group/project.git',
  'https://127.0.0.1:{C}/@{A}/group/project.git',
  'git@127.0.0.1:group/project.git',
  'ssh://git@127.0.0.1:{C}/group/project.git',
  // Query and fragment.
  'https://{A}/group/project.git?private_token=x',
  'https://{A}/group/project.git?',
  'https://{A}?/group/project.git',
  'https://{A}/group/project.git#main',
  'https://{A}/group/project.git#',
  'https://{A}/group;x/project.git',
  'https://{A}/group/project.git&x',
  // "..", and escapes.
  'https://{A}/../project.git',
  'https://{A}/group/../project.git',
  'https://{A}/group/..',
  'https://{A}/group/project..git',
  'https://{A}/gr..oup/project.git',
  'https://..{A}/group/project.git',
  'https://{A}/group/%2e%2e/project.git',
  'https://{A}/group/project%2egit',
  'https://{A}/group%2fproject.git',
  'https://{A}%2f@127.0.0.1:{C}/group/project.git',
  'https://{A}%00/group/project.git',
  'https://%31%32%37.0.0.1:{P}/group/project.git',
  'https://{A}/group/project.git%0a',
  // White space and control characters.
  ' https://{A}/group/project.git',
  'https://{A}/group/project.git ',
  'https://{A}/group/pro ject.git',
  'https:// {A}/group/project.git',
  'https://{A}/group/project.git\n',
  '\nhttps://{A}/group/project.git',
  'https://{A}/group/project.git\nhttps://127.0.0.1:{C}/group/project.git',
  'https://{A}/group/pro\tject.git',
  'ht\ttps://{A}/group/project.git',
  'https://{A}\r\nHost: x/group/project.git',
  'https://{A}/group/project.git\0',
  'https://{A}\0.x/group/project.git',
  'https://{A}/group/project\u007f.git',
  'https://{A}/group/\u001b[31mproject.git',
  'https://{A}/group/project\u0085.git',
  'https://{A}/group/project\u00a0.git',
  'https://{A}/group/pro\u2028ject.git',
  'https://{A}/group/\u202eproject.git',
  'https://{A}/group/project.git\ufeff',
  // Other alphabets, that a parser would make ASCII of.
  'https://{A}/grüppe/project.git',
  'https://127\u30020.0.1:{P}/group/project.git',
  'https://\uff11\uff12\uff17.0.0.1:{P}/group/project.git',
  'https://127.0.0.1\uff1a{P}/group/project.git',
  'https://{A}\uff0fgroup/project.git',
  'https://l\u00adocalhost:{P}/group/project.git',
  `https://{A}/group/${'x'.repeat(3_000)}`,
  `https://{A}/${'g/'.repeat(200)}project.git`,
];

test.each(notURLs.map((url) => [url.slice(0, 80), url] as const))('bad_url: %j', async (_shown, url) => {
  expect(refusal(await scene.ask('clone', { user, url: written(url) }))).toEqual([400, 'bad_url']);
});

const notAllowed: readonly string[] = [
  // Schemes.
  'http://{A}/group/project.git',
  'http://127.0.0.1:{C}/group/project.git',
  'file:///group/project.git',
  'file://{A}/group/project.git',
  'ssh://127.0.0.1:{C}/group/project.git',
  'git://127.0.0.1:{C}/group/project.git',
  'git+ssh://127.0.0.1:{C}/group/project.git',
  'ftp://127.0.0.1:{C}/group/project.git',
  'ftps://127.0.0.1:{C}/group/project.git',
  'ext://127.0.0.1:{C}/group/project.git',
  'fd://17/group/project.git',
  'bundle://127.0.0.1:{C}/group/project.git',
  'HTTPS://{A}/group/project.git',
  'Https://{A}/group/project.git',
  'HTTP://127.0.0.1:{C}/group/project.git',
  'ws://127.0.0.1:{C}/group/project.git',
  'unix://127.0.0.1/group/project.git',
  // Hosts and ports.
  'https://127.0.0.1/group/project.git',
  'https://127.0.0.1:443/group/project.git',
  'https://127.0.0.1:{C}/group/project.git',
  'https://127.0.0.1:/group/project.git',
  'https://127.0.0.1:0{P}/group/project.git',
  'https://127.0.0.1:{P}0/group/project.git',
  'https://127.0.0.1:{P}:{C}/group/project.git',
  'https://127.0.0.1.:{P}/group/project.git',
  'https://127.0.0.1.:{C}/group/project.git',
  'https://127.0.0.1.example.invalid:{P}/group/project.git',
  'https://x.127.0.0.1:{P}/group/project.git',
  'https://example.invalid/group/project.git',
  'https:///group/project.git',
  'https://:{P}/group/project.git',
  // Loopback, written in every way, and names of it.
  'https://localhost:{P}/group/project.git',
  'https://localhost:{C}/group/project.git',
  'https://LOCALHOST:{C}/group/project.git',
  'https://localhost.:{C}/group/project.git',
  'https://localhost.localdomain:{C}/group/project.git',
  'https://127.1:{P}/group/project.git',
  'https://127.1:{C}/group/project.git',
  'https://127.0.1:{C}/group/project.git',
  'https://127.0.0.2:{C}/group/project.git',
  'https://127.000.000.001:{C}/group/project.git',
  'https://0177.0.0.1:{C}/group/project.git',
  'https://0x7f.0.0.1:{C}/group/project.git',
  'https://0x7f000001:{C}/group/project.git',
  'https://0X7F000001:{P}/group/project.git',
  'https://2130706433:{C}/group/project.git',
  'https://2130706433:{P}/group/project.git',
  'https://017700000001:{C}/group/project.git',
  'https://0:{C}/group/project.git',
  'https://0.0.0.0:{C}/group/project.git',
  'https://[::1]:{C}/group/project.git',
  'https://[::1]:{P}/group/project.git',
  'https://[::]:{C}/group/project.git',
  'https://[0:0:0:0:0:0:0:1]:{C}/group/project.git',
  'https://[::ffff:127.0.0.1]:{C}/group/project.git',
  'https://[::ffff:127.0.0.1]:{P}/group/project.git',
  'https://[::FFFF:7f00:1]:{C}/group/project.git',
  'https://[::127.0.0.1]:{C}/group/project.git',
  'https://[64:ff9b::127.0.0.1]:{C}/group/project.git',
  'https://::1:{C}/group/project.git',
  'https://[127.0.0.1]:{P}/group/project.git',
  'https://[{A}]/group/project.git',
  'https://[::1/group/project.git',
  // Metadata services, and other insides of a network.
  'https://169.254.169.254/group/project.git',
  'http://169.254.169.254/latest/meta-data',
  'https://169.254.169.254.:443/group/project.git',
  'https://0xA9FEA9FE/group/project.git',
  'https://2852039166/group/project.git',
  'https://[fd00:ec2::254]/group/project.git',
  'https://[::ffff:169.254.169.254]/group/project.git',
  'https://metadata.google.internal/group/project.git',
  'https://10.0.0.1/group/project.git',
  'https://192.168.0.1/group/project.git',
];

test.each(notAllowed.map((url) => [url]))('host_not_allowed: %s', async (url) => {
  expect(refusal(await scene.ask('clone', { user, url: written(url) }))).toEqual([403, 'host_not_allowed']);
});

test('a scheme that no tool of git’s can be asked by, and a zone, are refused one way or the other', async () => {
  for (const url of [
    'https://[fe80::1%25eth0]:{C}/group/project.git',
    'ht!tps://{A}/group/project.git',
    '://{A}/group/project.git',
  ])
    expect([400, 403], url).toContain((await scene.ask('clone', { user, url: written(url) })).status);
});

test('after all of them nobody was asked anything, nothing runs, and there is nothing in the space', async () => {
  expect(scene.counting.reached).toEqual(unreached);
  expect(scene.server.seen).toEqual([]);
  expect(allProcesses().filter(({ uids, command }) => uids.includes(uidOf(user)) && command.includes('git'))).toEqual(
    [],
  );
  // The one that all of them come from is taken.
  done(await scene.ask('clone', { user, url: written(good) }));
  expect(scene.leftIn(user).repos, spaceOf(scene.service, user)).toEqual(['group__project']);
});

test('a name that is allowed is allowed in one spelling, with its port', async () => {
  const named = await GitScene.start({
    RUNNER_ALLOWED_GIT_HOSTS: `localhost:${scene.server.port},git.example.invalid`,
  });
  const ask = (url: string) => named.ask('clone', { user: user + 1, url, env: scene.server.env() });
  try {
    for (const host of [
      'LOCALHOST:{P}',
      'localhost.:{P}',
      'Localhost:{P}',
      'localhost',
      '127.0.0.1:{P}',
      'git.example.invalid.',
      'git.example.invalid:444',
    ])
      expect(refusal(await ask(written(`https://${host}/group/project.git`))), host).toEqual([403, 'host_not_allowed']);
    done(await ask(written('https://localhost:{P}/group/project.git')));
  } finally {
    await named.stop();
  }
});
