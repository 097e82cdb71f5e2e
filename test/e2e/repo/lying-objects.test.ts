import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { deflateSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { beside, clean, done, failed, GitScene, type Work } from '../../support/git-scene.ts';
import { systemTools } from '../../support/user.ts';

let scene: GitScene;
let next = 624_000;

beforeAll(async () => {
  scene = await GitScene.start(systemTools('sh'));
});
afterAll(() => scene.stop());

/** The place of a commit's object in the clone, and a content that lies about its parent. */
const lieAbout = async ({ user, folder, project }: Work, commit: string, parent: string) => {
  const tree = await scene.git(user, folder, 'rev-parse', `${commit}^{tree}`);
  const person = 'A <a@example.invalid> 1700000000 +0000';
  const lie = `tree ${tree}\nparent ${parent}\nauthor ${person}\ncommitter ${person}\n\nlie\n`;
  const place = join(scene.at(user, `repos/${project}/.git/objects`), commit.slice(0, 2), commit.slice(2));
  return { place, lie: deflateSync(`commit ${lie.length}\0${lie}`) };
};

/** A push by a git that is told nothing, from a repository that borrows the clone's objects: without force. */
const pushByPlainGit = ({ user, project, branch }: Work, commit: string): Promise<string> =>
  scene.sh(
    user,
    '',
    `git init -q --bare --template= control.git; cd control.git
     G=$HOME/repos/${project}/.git; echo $G/objects >objects/info/alternates; [ ! -f $G/shallow ] || cp $G/shallow .
     git push -q ${scene.server.url(`${project.replace('__', '/')}.git`)} ${commit}:refs/heads/${branch}`,
    scene.server.plainEnv(),
  );

test.each([
  ['an object that isn’t what its name says', ''],
  ['a pack whose object isn’t what its name says', 'git repack -adq && rm -f .git/objects/??/*'],
  ['a commit graph that was written when an object lied', 'rm .git/shallow; git commit-graph write --reachable'],
])('%s doesn’t let a push overwrite a remote that has moved on', async (what, script) => {
  const work = await scene.prepared(next++);
  const { user, repository, branch, folder, project } = work;
  const first = await scene.commit(work, 'first');
  done(await scene.push(work));
  // Written anew, so that what the lie makes of history is no circle.
  const theirs = repository.commit(`aside-${project}`, { 'theirs.txt': 't\n' }, 'theirs');
  repository.git('update-ref', `refs/heads/${branch}`, theirs);
  const ours = await scene.commit(work, 'ours');
  failed(await scene.push(work));
  // Their commit comes into the clone as the base of another worktree.
  done(await scene.worktree(beside(work), { baseBranch: branch }));
  const { place, lie } = await lieAbout(work, first, theirs);
  const truth = readFileSync(place);
  chmodSync(place, 0o600);
  writeFileSync(place, lie);
  await scene.sh(user, `repos/${project}`, script);
  if (what.includes('graph')) writeFileSync(place, truth);
  expect(await scene.git(user, folder, 'rev-list', ours), 'git believes it').toContain(theirs);

  const refs = repository.refs();
  await pushByPlainGit(work, ours);
  expect(repository.tip(branch), 'the lie is one that overwrites').toBe(ours);
  repository.git('update-ref', `refs/heads/${branch}`, theirs);
  expect(repository.refs()).toEqual(refs);

  const pushed = repository.pushed().length;
  const answer = await scene.push(work);
  expect(repository.refs(), answer.text).toEqual(refs);
  failed(answer);
  expect(repository.pushed()).toHaveLength(pushed);
  expect(scene.leftIn(user)).toEqual(clean(project));
});
