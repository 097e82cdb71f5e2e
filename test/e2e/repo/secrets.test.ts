import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { BareRepository } from '../../support/bare-repository.ts';
import { beside, done, failed, GitScene, refusal, type Work } from '../../support/git-scene.ts';
import type { Answer } from '../../support/http.ts';
import { allProcesses } from '../../support/processes.ts';
import { spaceOf, systemTools, uidOf } from '../../support/user.ts';
import { eventually } from '../../support/wait.ts';

const user = 623_000;
const planted = (what: string): string => `${what}-${randomBytes(9).toString('hex')}`;
/** What belongs to the user: in their space, in answers to them, in the command lines of their git, and nowhere else. */
const names = {
  group: planted('group'),
  project: planted('project'),
  base: planted('base'),
  message: planted('message'),
  file: planted('file'),
  content: planted('content'),
};
let scene: GitScene;
let work: Work;
let repository: BareRepository;
const answers: Answer[] = [];

beforeAll(async () => {
  scene = await GitScene.start({ ...systemTools('sh'), RUNNER_LOG_LEVEL: 'trace' });
  repository = scene.server.repository(`${names.group}/${names.project}`);
  repository.commit('main', { [names.file]: names.content }, names.message);
  repository.commit(names.base, { [names.file]: names.content }, names.message);
  work = beside({ user, repository, project: `${names.group}__${names.project}` });
});
afterAll(() => scene.stop());

const url = (): string => scene.server.url(`${names.group}/${names.project}.git`);
const told = async (answer: Promise<Answer>): Promise<Answer> => {
  answers.push(await answer);
  return answer;
};

/** Which of these a text has. */
const found = (text: string, secrets: readonly string[]): string[] => secrets.filter((secret) => text.includes(secret));
const ofUser = (): string[] => [...Object.values(names), work.conversation];

/** Every file beneath a folder that has one of these in it. */
const filesWith = (top: string, secrets: readonly string[], leaveOut = ''): string[] => {
  const patterns = secrets.flatMap((secret) => ['-e', secret]);
  try {
    const paths = execFileSync('grep', ['-rlFa', ...patterns, top], { encoding: 'utf8' })
      .trimEnd()
      .split('\n');
    return paths.filter((path) => leaveOut === '' || !path.startsWith(`${leaveOut}/`));
  } catch (error) {
    if ((error as { status?: number }).status === 1) return [];
    throw error;
  }
};

const environmentOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1');
  } catch {
    return '';
  }
};

test.each(['clone', 'worktree', 'push'] as const)(
  'while a %s is under way the token is in the environment of the user’s git, and in nothing else',
  async (route) => {
    const { token } = scene.server;
    const hold = scene.server.hold(({ method }) => method === 'POST', 'half');
    const answer = told(
      route === 'clone'
        ? scene.ask('clone', { user, url: url() })
        : route === 'worktree'
          ? scene.worktree(work, { baseBranch: names.base })
          : scene.push(work),
    );
    await hold.reached;
    const all = allProcesses();
    const own = all.filter(({ uids }) => uids.every((uid) => uid === uidOf(user)));
    const holders = all.filter(({ pid }) => environmentOf(pid).includes(token));
    expect(holders.length).toBeGreaterThan(0);
    for (const { uids, command } of holders) {
      expect(uids, command).toEqual([0, 0, 0, 0].map(() => uidOf(user)));
      expect(command).toMatch(/git/);
    }
    for (const { pid, command } of all) {
      expect(found(command, [token]), command).toEqual([]);
      if (!own.some((process) => process.pid === pid)) expect(found(command, ofUser()), command).toEqual([]);
    }
    expect(filesWith(scene.service.folder, [token])).toEqual([]);
    hold.release();
    done(await answer);
    if (route === 'worktree') await scene.commit(work, names.message);
  },
);

test('and after successes and failures of every kind', async () => {
  const { server } = scene;
  const { project } = work;
  failed(await told(scene.ask('clone', { user, url: server.url(`${names.group}/none-${names.project}.git`) })));
  failed(
    await told(scene.ask('clone', { user, url: server.url(`${names.group}/other.git`), env: server.env('wrong') })),
  );
  failed(await told(scene.worktree(beside(work), { baseBranch: `not-${names.base}` })));
  repository.commit(work.branch, { 'theirs.txt': 't' });
  await scene.commit(work, names.message);
  failed(await told(scene.push(work)));
  await scene.git(user, work.folder, 'checkout', '--quiet', '-b', `topic-${names.base}`);
  const refused: Answer[] = [];
  for (const ask of [
    () => scene.push(work),
    () => scene.ask('clone', { user, url: url() }),
    () => scene.worktree(work),
    () =>
      scene.ask('clone', { user, url: `https://${server.token}@${server.host}/${names.group}/${names.project}.git` }),
    () => scene.ask('clone', { user, url: `https://${names.group}.invalid/${names.group}/${names.project}.git` }),
    () => scene.worktree(work, { baseBranch: `-${names.base}` }),
    () => scene.worktree(work, { project: `-${project}` }),
    () => scene.push(work, { project: `no-${project}` }),
    () => scene.push(work, { env: [`GIT_DIR=${server.token}`] }),
    () => scene.push(work, { env: [`${names.base.replace('-', '_')}`] }),
    () => scene.push(work, { [names.base]: names.message }),
  ])
    refused.push(await told(ask()));
  expect(new Set(refused.map((answer) => refusal(answer)[1]))).toEqual(
    new Set([
      'wrong_branch',
      'exists',
      'bad_url',
      'host_not_allowed',
      'bad_name',
      'no_worktree',
      'bad_env',
      'bad_request',
    ]),
  );
  for (const { text } of refused) expect(found(text, ofUser()), text).toEqual([]);
  expect(answers.length).toBeGreaterThan(15);
  for (const { text } of answers) expect(found(text, [server.token]), text).toEqual([]);
});

test('neither is in the audit, the log, the ledger, or any other file of the service; the token in no file at all', async () => {
  const { token } = scene.server;
  await scene.service.exec(user + 1, 'sh', ['-c', 'true']);
  await scene.service.audited((line) => line['user'] === user + 1);
  expect(scene.service.audit.filter(({ action }) => action.startsWith('repo.')).length).toBeGreaterThanOrEqual(
    answers.length - 4,
  );
  const secrets = [...ofUser(), token, scene.server.host, scene.server.askpass];
  expect(found(scene.service.auditText.join('\n'), secrets)).toEqual([]);
  expect(found(scene.service.log.join('\n'), secrets)).toEqual([]);
  const space = spaceOf(scene.service, user);
  // The search finds what is there.
  expect(filesWith(space, [names.base]).length).toBeGreaterThan(0);
  expect(filesWith(scene.service.folder, [...ofUser(), token], space)).toEqual([]);
  expect(filesWith(scene.service.folder, [token])).toEqual([]);
});

test('no process that is left has any of it', async () => {
  await eventually(
    'the user’s git is gone',
    () => !allProcesses().some(({ uids, command }) => uids.includes(uidOf(user)) && /git/.test(command)),
  );
  for (const { pid, command } of allProcesses()) {
    expect(found(command, [scene.server.token, ...ofUser()]), command).toEqual([]);
    if (pid !== process.pid) expect(environmentOf(pid), command).not.toContain(scene.server.token);
  }
});
