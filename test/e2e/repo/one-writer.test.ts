import { existsSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ask } from '../../support/files.ts';
import { beside, clean, done, GitScene, refusal } from '../../support/git-scene.ts';
import { holdRun } from '../../support/held-run.ts';
import { Service } from '../../support/service.ts';
import { systemTools } from '../../support/user.ts';

let scene: GitScene;
let next = 620_000;

beforeAll(async () => {
  scene = await GitScene.start({ ...systemTools('sh'), RUNNER_USER_QUOTA_BYTES: '1000000' });
});
afterAll(() => scene.stop());

test('while a run is on, each of them is busy, and asks nobody', async () => {
  const work = await scene.prepared(next++);
  const { user, project } = work;
  const held = await holdRun(scene.service, user);
  const asked = scene.server.seen.length;
  const id = { id: work.conversation, project, user };
  const answers = [
    await scene.ask('clone', { user, url: scene.server.url('group/other.git') }),
    await scene.worktree(beside(work)),
    await scene.push(work),
    await scene.ask('agent-worktree', { ...id, baseBranch: 'main' }),
    await scene.ask('agent-push', id),
  ];
  held.release();
  const { operationId } = (await held.answer).body;
  for (const { status, body } of answers)
    expect([status, body.error, body.details]).toEqual([409, 'busy', { action: 'exec', operationId }]);
  expect(scene.server.seen).toHaveLength(asked);
  const line = await scene.service.audited((found) => found['operationId'] === answers[2]?.body.operationId);
  expect(line).toMatchObject({ action: 'repo.push', user, status: 'busy', reason: 'busy' });
  done(await scene.push(work));
});

test('while a process is on, too', async () => {
  const work = await scene.prepared(next++);
  const start = { workspaceId: String(work.user), tool: 'sh', args: ['-c', 'cat'] };
  const started = await scene.service.client.post('/v1/process/start', start);
  expect(started.status, started.text).toBe(200);
  const { processId } = JSON.parse(started.text) as { processId: string };
  const { status, body } = await scene.push(work);
  expect([status, body.error, body.details]).toMatchObject([409, 'busy', { action: 'process.start', processId }]);
  await scene.service.client.post('/v1/process/terminate', { processId });
  done(await scene.push(work));
});

test.each(['clone', 'worktree', 'push'] as const)(
  'while a %s is on, changes are busy, looking is served, others go on',
  async (route) => {
    const work = await scene.prepared(next++);
    const { user, project } = work;
    await scene.commit(work);
    const { path } = scene.repository();
    const hold = scene.server.hold(({ method }) => method === 'POST');
    const asked =
      route === 'clone'
        ? scene.ask('clone', { user, url: scene.server.url(`${path}.git`) })
        : route === 'worktree'
          ? scene.worktree(beside(work))
          : scene.push(work);
    await hold.reached;
    const busy = [
      await scene.service.exec(user, 'sh', ['-c', 'cat /proc/*/environ']),
      await scene.service.client.post('/v1/process/start', { workspaceId: String(user), tool: 'sh', args: [] }),
      await ask(scene.service, 'files/write', { user, path: 'f', content: 'x' }),
      await ask(scene.service, 'files/delete', { user, path: `repos/${project}` }),
      await ask(scene.service, 'workspace/reset', { user }),
      await scene.push(work),
    ];
    const served = [
      await ask(scene.service, 'files/list', { user }),
      await ask(scene.service, 'files/read', { user, path: `repos/${project}/README.md` }),
      await scene.service.client.post('/v1/usage', { user }),
      await scene.service.exec(next++, 'sh', ['-c', 'true']),
    ];
    hold.release();
    const { operationId } = done(await asked);
    for (const { status, body } of busy)
      expect([status, body.error, body.details]).toEqual([409, 'busy', { action: `repo.${route}`, operationId }]);
    expect(served.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect((await scene.service.exec(user, 'sh', ['-c', 'true'])).status).toBe(200);
  },
);

test('over the limit: no clone, no worktree; a push is never refused for it, nor a delete', async () => {
  const work = await scene.prepared(next++);
  const { user, project, conversation } = work;
  await scene.commit(work);
  await scene.sh(user, '', 'truncate -s 1000000 large');
  const { path } = scene.repository();
  const asked = scene.server.seen.length;
  const refused = {
    'repo.clone': await scene.ask('clone', { user, url: scene.server.url(`${path}.git`) }),
    'repo.worktree': await scene.worktree(beside(work)),
    'repo.agent_worktree': await scene.ask('agent-worktree', { user, project, id: conversation, baseBranch: 'main' }),
  };
  for (const [action, answer] of Object.entries(refused)) {
    expect(refusal(answer), action).toEqual([507, 'disk_quota']);
    const line = await scene.service.audited(({ operationId }) => operationId === answer.body.operationId);
    expect(line).toMatchObject({ action, user, status: 'denied', reason: 'disk_quota' });
  }
  expect(scene.server.seen).toHaveLength(asked);
  expect(scene.leftIn(user)).toEqual(clean(project));
  expect(existsSync(scene.at(user, `work/agent-${conversation}`))).toBe(false);
  done(await scene.push(work));
  expect((await ask(scene.service, 'files/delete', { user, path: 'large' })).status).toBe(200);
  done(await scene.worktree(beside(work)));
});

test('what a clone and a worktree take is seen at once', async () => {
  const user = next++;
  const usage = async () =>
    JSON.parse((await scene.service.client.post('/v1/usage', { user })).text) as { groups: { path: string }[] };
  expect((await usage()).groups).toEqual([]);
  const { repository, path, project } = scene.repository();
  done(await scene.ask('clone', { user, url: scene.server.url(`${path}.git`) }));
  expect((await usage()).groups.map((group) => group.path)).toEqual([`home/repos/${project}`]);
  const work = beside({ user, repository, project });
  done(await scene.worktree(work));
  expect((await usage()).groups.map((group) => group.path).sort()).toEqual(
    [`home/repos/${project}`, `home/${work.folder}`].sort(),
  );
});

test('a limit that is on runs counts these, too', async () => {
  const one = await Service.start({
    settings: { ...systemTools('sh'), RUNNER_MAX_RUNS: '1', RUNNER_ALLOWED_GIT_HOSTS: scene.server.host },
  });
  try {
    const held = await holdRun(one, next++);
    const fields = { user: next++, url: scene.server.url('group/project.git'), env: scene.server.env() };
    const { status, body } = await one.client.post('/v1/repo/clone', fields);
    expect([status, body.error]).toEqual([503, 'overloaded']);
    held.release();
    await held.answer;
  } finally {
    await one.stop();
  }
});
