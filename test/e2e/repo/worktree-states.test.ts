import { existsSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { beside, clean, done, GitScene, refusal, type Work } from '../../support/git-scene.ts';
import { systemTools } from '../../support/user.ts';

// What a user, or a git that was killed, can have left in the clone and in the home.

let scene: GitScene;
let next = 625_000;

beforeAll(async () => {
  scene = await GitScene.start(systemTools('sh'));
});
afterAll(() => scene.stop());

/** Runs git in the clone. */
const inClone = ({ user, project }: Work, ...args: readonly string[]): Promise<string> =>
  scene.git(user, `repos/${project}`, ...args);

test('a clone that was given its whole history keeps it', async () => {
  const user = next++;
  const { repository, path, project } = scene.repository();
  repository.commit('main', { 'README.md': 'second\n' }, 'second');
  done(await scene.ask('clone', { user, url: scene.server.url(`${path}.git`) }));
  const work = beside({ user, repository, project });
  const whole = () => inClone(work, 'log', '--format=%s', 'main');
  expect(await whole()).toBe('second');
  await scene.sh(user, `repos/${project}`, 'git fetch -q --unshallow', scene.server.plainEnv());
  expect(await whole()).toBe('second\nfirst');
  // Once with the commit that the clone has, once with a newer one.
  done(await scene.worktree(beside(work)));
  expect(await whole()).toBe('second\nfirst');
  const tip = repository.commit('main', { 'README.md': 'third\n' }, 'third');
  expect(done(await scene.worktree(work)).commit).toBe(tip);
  expect(await whole()).toBe('second\nfirst');
  await inClone(work, 'fsck', '--connectivity-only');
  const commit = await scene.commit(work);
  expect(done(await scene.push(work)).commit).toBe(commit);
  expect(await whole()).toBe('second\nfirst');
});

test('a ref that is in the way of the base branch’s: made all the same', async () => {
  const work = await scene.preparedClone(next++);
  await inClone(work, 'update-ref', 'refs/remotes/origin/release', 'HEAD');
  const tip = work.repository.commit('release/1.0', { 'r.txt': 'r\n' });
  expect(done(await scene.worktree(work, { baseBranch: 'release/1.0' })).commit).toBe(tip);
  const refs = await inClone(work, 'for-each-ref', '--format=%(refname)', 'refs/remotes/origin/release');
  expect(refs, 'the user’s ref stays').toBe('refs/remotes/origin/release');
});

test('locks and half packs of a killed git are in nobody’s way', async () => {
  const work = await scene.worked(next++);
  const { user, project, conversation, folder, branch, repository } = work;
  const lost = await scene.commit(work, 'lost');
  const locks = [`refs/lost/${branch}/1`, `refs/heads/${branch}`, 'refs/remotes/origin/main', 'packed-refs', 'shallow'];
  await scene.sh(
    user,
    `repos/${project}/.git`,
    `rm -r ../../../work/${conversation}; mkdir -p refs/lost/${branch} objects/pack
     touch ${locks.map((lock) => `${lock}.lock`).join(' ')} objects/pack/tmp_pack_x`,
  );
  const tip = repository.commit('main', { 'README.md': 'later\n' });
  expect(done(await scene.worktree(work)).commit).toBe(tip);
  expect(await inClone(work, 'rev-parse', `refs/lost/${branch}/1`, branch)).toBe(`${lost}\n${tip}`);
  expect(await scene.sh(user, `repos/${project}/.git`, 'find . -name "*.lock" -o -name "tmp_*"')).toBe('');
  expect(await scene.git(user, folder, 'status', '--porcelain')).toBe('');
});

test.each([
  ['work', 409, 'exists'],
  ['repos', 404, 'no_project'],
] as const)('%s is a link: refused, and nothing is changed', async (name, status, code) => {
  const work = await scene.prepared(next++);
  const { user, repository } = work;
  const commit = await scene.commit(work);
  await scene.sh(user, '', `mkdir elsewhere; mv ${name} elsewhere/; ln -s elsewhere/${name} ${name}`);
  const tree = () => scene.sh(user, '', 'find . ../tmp -printf "%p %i %s %m %T@\\n" | sort');
  const [before, refs, asked] = [await tree(), repository.refs(), scene.server.seen.length];
  expect(refusal(await scene.worktree(beside(work)))).toEqual([status, code]);
  expect(refusal(await scene.push(work))).toEqual([404, 'no_worktree']);
  if (name === 'repos') {
    const url = scene.server.url('group/another.git');
    expect(refusal(await scene.ask('clone', { user, url }))).toEqual([409, 'exists']);
  }
  expect(await tree()).toBe(before);
  expect(repository.refs()).toEqual(refs);
  expect(scene.server.seen).toHaveLength(asked);
  await scene.sh(user, '', `rm ${name}; mv elsewhere/${name} .`);
  expect(done(await scene.push(work)).commit).toBe(commit);
});

test.each([
  ['at once', 'gone; talk; cat >/dev/null'],
  ['when git is done', 'talk; cat >/dev/null; gone'],
])(
  'a filter removes the tree %s: nothing is told as made, or as not done, and the next try works',
  async (_when, steps) => {
    const work = await scene.preparedClone(next++);
    const { user, project, folder } = work;
    const tree = scene.at(user, '../tmp/.git-workflow/tree');
    await scene.sh(
      user,
      '',
      `cat >filter <<'END'
#!/bin/sh
gone() { rm -rf ${tree} && echo gone >>${scene.at(user, 'log')}; }
talk() { printf '0016git-filter-server\\n000eversion=2\\n00000000'; }
${steps}
END
     chmod 700 filter; cd repos/${project}; mkdir -p .git/info; echo '* filter=x' >.git/info/attributes
     git config filter.x.process ${scene.at(user, 'filter')}`,
    );
    const { status, body, text } = await scene.worktree(work);
    expect(await scene.sh(user, '', 'cat log'), text).toBe('gone');
    if (status === 200) expect(body.ok, text).toBe(false);
    else expect([status, body.error]).toEqual([502, 'uncertain']);
    expect(existsSync(scene.at(user, folder))).toBe(false);
    expect(scene.leftIn(user)).toEqual(clean(project));
    await inClone(work, 'config', '--unset', 'filter.x.process');
    done(await scene.worktree(work));
    expect(await scene.sh(user, folder, 'cat README.md; git status --porcelain')).toBe('first');
  },
);
