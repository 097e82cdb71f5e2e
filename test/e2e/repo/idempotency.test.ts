import { afterAll, beforeAll, expect, test } from 'vitest';
import { beside, clean, done, failed, GitScene, refusal } from '../../support/git-scene.ts';
import { statusOf } from '../../support/keyed.ts';

let scene: GitScene;
let next = 621_000;

beforeAll(async () => {
  scene = await GitScene.start();
});
afterAll(() => scene.stop());

test('clone, worktree and push under their keys are told again, and ask nobody a second time', async () => {
  const user = next++;
  const { repository, path, project } = scene.repository();
  const work = beside({ user, repository, project });
  const changes = {
    clone: () => scene.ask('clone', { user, url: scene.server.url(`${path}.git`) }, 'clone'),
    worktree: () => scene.worktree(work, {}, 'worktree'),
    push: () => scene.push(work, {}, 'push'),
  };
  for (const [what, change] of Object.entries(changes)) {
    const first = done(await change());
    const asked = scene.server.seen.length;
    const again = await change();
    expect(again.headers, what).toMatchObject({ 'idempotency-replayed': 'true', 'operation-id': first.operationId });
    expect(again.body).toStrictEqual({ ...first, replayed: true });
    expect(scene.server.seen).toHaveLength(asked);
    const { body } = await statusOf(scene.service, { user, idempotencyKey: what });
    expect(body).toMatchObject({ state: 'finished', outcome: 'ok', operationId: first.operationId });
  }
  expect(repository.pushed()).toHaveLength(1);
});

test('another token is the same request; another URL, branch or conversation is a conflict', async () => {
  const work = await scene.preparedClone(next++);
  const { user } = work;
  const first = done(await scene.worktree(work, {}, 'key'));
  const again = await scene.worktree(work, { env: scene.server.env('another') }, 'key');
  expect(again.body).toMatchObject({ operationId: first.operationId, replayed: true });
  for (const answer of [
    await scene.worktree(work, { baseBranch: 'other' }, 'key'),
    await scene.worktree(beside(work), {}, 'key'),
    await scene.push(work, {}, 'key'),
    await scene.ask('clone', { user, url: scene.server.url('group/other.git') }, 'key'),
  ])
    expect(refusal(answer)).toEqual([409, 'idempotency_conflict']);
});

test('twenty callers race with one key: one clone, and each gets its answer or is told that it runs', async () => {
  const user = next++;
  const { path, project } = scene.repository();
  const hold = scene.server.hold(({ method }) => method === 'POST');
  const clone = () => scene.ask('clone', { user, url: scene.server.url(`${path}.git`) }, 'race');
  const first = clone();
  await hold.reached;
  const others = await Promise.all(Array.from({ length: 19 }, clone));
  hold.release();
  const { operationId } = done(await first);
  for (const { status, body } of others)
    expect([status, body]).toMatchObject([409, { error: 'operation_running', details: { operationId } }]);
  expect((await clone()).body).toMatchObject({ operationId, replayed: true });
  expect(hold.count).toBe(1);
  expect(scene.leftIn(user)).toEqual(clean(project));
});

test('a git that failed is an outcome, and is told again; a refusal binds no key', async () => {
  const user = next++;
  const { path } = scene.repository();
  const clone = (token: string) =>
    scene.ask('clone', { user, url: scene.server.url(`${path}.git`), env: scene.server.env(token) }, 'failing');
  const first = failed(await clone('wrong'));
  const asked = scene.server.seen.length;
  expect((await clone(scene.server.token)).body).toStrictEqual({ ...first, replayed: true });
  expect(scene.server.seen).toHaveLength(asked);
  const refused = await scene.ask('clone', { user, url: 'https://example.invalid/g/p.git' }, 'refused');
  expect(refusal(refused)).toEqual([403, 'host_not_allowed']);
  done(await scene.ask('clone', { user, url: scene.server.url(`${path}.git`) }, 'refused'));
});
