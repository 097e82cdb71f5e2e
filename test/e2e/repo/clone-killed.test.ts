import { readdirSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { beside, clean, done, failed, GitScene } from '../../support/git-scene.ts';
import type { Hold, SeenRequest } from '../../support/git-server.ts';
import { statusOf } from '../../support/keyed.ts';
import { killAll, processesOf } from '../../support/processes.ts';
import { token } from '../../support/service.ts';
import { homeOf, systemTools, uidOf } from '../../support/user.ts';
import { eventually } from '../../support/wait.ts';

/** Long enough for a clone on a busy machine. */
const limitSec = 10;
let scene: GitScene;
let next = 611_000;

beforeAll(async () => {
  scene = await GitScene.start({ ...systemTools('sh'), RUNNER_EXEC_TIMEOUT_SEC: String(limitSec) });
});
afterAll(() => scene.stop());

const isInfo = ({ path }: SeenRequest): boolean => path.includes('/info/refs');
const isPack = ({ method }: SeenRequest): boolean => method === 'POST';

/** The processes of a user that are git, zombies left out. */
const gitsOf = (user: number) =>
  processesOf(uidOf(user)).filter(({ command, state }) => state !== 'Z' && /git/.test(command));

/** A clone that waits for the server. */
const heldClone = async (matches: (seen: SeenRequest) => boolean, point: Parameters<GitScene['server']['hold']>[1]) => {
  const user = next++;
  const { path, project } = scene.repository();
  const hold: Hold = scene.server.hold((seen) => seen.path.startsWith(`/${path}.git`) && matches(seen), point);
  const clone = () => scene.ask('clone', { user, url: scene.server.url(`${path}.git`) });
  const answer = clone();
  await hold.reached;
  expect(gitsOf(user).length).toBeGreaterThan(0);
  expect(readdirSync(`${homeOf(scene.service, user)}/repos`), 'nothing is in its place before all is there').toEqual(
    [],
  );
  return { user, project, hold, clone, answer };
};

/** Lets the server answer again, and repeats the clone. */
const repeats = async ({ user, project, hold, clone }: Awaited<ReturnType<typeof heldClone>>): Promise<void> => {
  await hold.left;
  hold.release();
  done(await clone());
  expect(scene.leftIn(user)).toEqual(clean(project));
  expect(await scene.git(user, `repos/${project}`, 'status', '--porcelain')).toBe('');
};

test('the time limit passes at any point: timedOut, nothing left, and it can be repeated', async () => {
  const points = [
    [isInfo, 'done'],
    [isPack, 'done'],
    [isPack, 'half'],
  ] as const;
  const passes = async ([matches, point]: (typeof points)[number]) => {
    const held = await heldClone(matches, point);
    const body = failed(await held.answer);
    expect(body).toMatchObject({ timedOut: true, exitCode: -1 });
    expect(body.durationMs).toBeGreaterThanOrEqual(limitSec * 1_000 - 100);
    expect(body.durationMs).toBeLessThan(limitSec * 1_000 + 4_000);
    expect(processesOf(uidOf(held.user)).filter(({ command }) => /git/.test(command))).toEqual([]);
    expect(scene.leftIn(held.user)).toEqual(clean());
    const line = await scene.service.audited(({ operationId }) => operationId === body.operationId);
    expect(line).toMatchObject({ action: 'repo.clone', user: held.user, status: 'timeout' });
    return held;
  };
  // One after the other: each has to be done within the limit.
  for (const held of await Promise.all(points.map(passes))) await repeats(held);
});

test.each([
  ['all of git', /git/],
  ['the one that talks to the server', /remote-http/],
])('%s is killed in the middle: ok false, nothing left, and it can be repeated', async (_which, pattern) => {
  const held = await heldClone(isPack, 'half');
  const victims = gitsOf(held.user).filter(({ command }) => pattern.test(command));
  expect(victims.length).toBeGreaterThan(0);
  killAll(victims.map(({ pid }) => pid));
  const body = failed(await held.answer);
  expect(body.timedOut).toBe(false);
  expect(body.exitCode).not.toBe(0);
  expect(scene.leftIn(held.user)).toEqual(clean());
  await repeats(held);
});

test.each([
  ['before the objects', isPack, 'done'],
  ['in the middle of an answer', isPack, 'half'],
] as const)(
  'the worker is killed %s: uncertain, nothing in its place, and it can be repeated',
  async (_when, matches, point) => {
    const held = await heldClone(matches, point);
    const before = scene.service.part('worker').pid;
    process.kill(before, 'SIGKILL');
    const told = await held.answer;
    expect([told.status, told.body.error]).toEqual([502, 'uncertain']);
    await scene.service.replaced('worker', before);
    expect(gitsOf(held.user)).toEqual([]);
    expect(scene.leftIn(held.user).repos).toEqual([]);
    expect(await statusOf(scene.service, { operationId: told.body.operationId ?? '' })).toMatchObject({
      body: { state: 'interrupted', outcome: null },
    });
    await repeats(held);
  },
);

test('pipes in the places of files that git or the helper reads don’t hold a workflow for longer than its limit', async () => {
  const pipes = ['config', 'packed-refs', 'shallow', 'objects/info/alternates', 'HEAD', 'index'];
  const works = await Promise.all(pipes.map(() => scene.prepared(next++)));
  const asked = pipes.map(async (pipe, index) => {
    const work = works[index];
    if (!work) throw new Error('no worktree');
    const place = `.git/${pipe}`;
    await scene.sh(work.user, `repos/${work.project}`, `mkdir -p .git/objects/info; rm -f ${place}; mkfifo ${place}`);
    const answers = [await scene.push(work), await scene.worktree(beside(work))];
    return { pipe, work, answers };
  });
  for (const { pipe, work, answers } of await Promise.all(asked)) {
    for (const { status, body, text } of answers) {
      expect([200, 400, 403, 404], `${pipe}: ${text}`).toContain(status);
      expect(body.durationMs ?? 0, pipe).toBeLessThan(limitSec * 1_000 + 4_000);
    }
    const { space, tmp } = scene.leftIn(work.user);
    expect([space, tmp], pipe).toEqual([['home', 'tmp'], []]);
    expect(gitsOf(work.user), pipe).toEqual([]);
  }
}, 120_000);

test('a client that hangs up doesn’t stop it', async () => {
  const user = next++;
  const { path, project } = scene.repository();
  const hold = scene.server.hold(isPack);
  const gone = new AbortController();
  const answer = fetch(`http://127.0.0.1:${scene.service.port}/v1/repo/clone`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
    body: JSON.stringify({ user, url: scene.server.url(`${path}.git`), env: scene.server.env() }),
    signal: gone.signal,
  });
  await hold.reached;
  gone.abort();
  await expect(answer).rejects.toThrow('aborted');
  hold.release();
  const line = await eventually('its end', () => scene.service.audit.find((one) => one['user'] === user), 30_000);
  expect(line).toMatchObject({ action: 'repo.clone', status: 'ok', exit: 0 });
  await eventually('the lock is free', () => scene.leftIn(user).tmp.length === 0);
  expect(scene.leftIn(user)).toEqual(clean(project));
});
