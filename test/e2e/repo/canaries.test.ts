import { afterAll, beforeAll, expect, test } from 'vitest';
import { Canaries, type Trap, type TrapPlace } from '../../support/canary.ts';
import { unreached } from '../../support/counting-server.ts';
import { beside, clean, done, failed, GitScene, type Work } from '../../support/git-scene.ts';
import { detourTraps, homeTraps, moreRefsTraps, programTraps, repositoryTraps } from '../../support/git-traps.ts';
import { processesOf } from '../../support/processes.ts';
import { systemTools, uidOf } from '../../support/user.ts';

let scene: GitScene;
let next = 617_000;

beforeAll(async () => {
  scene = await GitScene.start(systemTools('sh'));
});
afterAll(() => scene.stop());

/** Each sets and proves up to twenty traps, one after another. */
const timeoutMs = 180_000;
const traps = (name: string, run: () => Promise<void>) => test(name, run, timeoutMs);

/** Where the traps of one flow are set. */
type Scope = 'home' | 'clone' | 'worktree';

const placeOf = (scope: Scope, { project, folder }: Work): TrapPlace => {
  if (scope === 'home') return { dir: 'own', option: '--global', file: '"$HOME/.gitconfig"' };
  if (scope === 'clone') return { dir: `repos/${project}`, option: '--local', file: '.git/config' };
  return { dir: folder, option: '--worktree', file: '"$(git rev-parse --git-path config.worktree)"' };
};

/** A repository with what the traps need: files of two kinds, a tag, another branch. */
const prepared = (user: number): { readonly work: Work; readonly url: string } => {
  const { repository, path, project } = scene.repository();
  const tip = repository.commit('main', { 'README.md': 'r\n', 'data.txt': 'd\n' });
  repository.commit('other', { 'o.txt': 'o\n' });
  repository.git('update-ref', 'refs/tags/v1', tip);
  return { work: beside({ user, repository, project }), url: scene.server.url(`${path}.git`) };
};

/**
 * Clone, worktree, a commit and a push, with traps set at the moment that their scope is there. That they are traps is
 * shown for one scope of each: all of git's files of settings say the same.
 */
const through = async (scope: Scope, set: readonly Trap[], proven: 'proven' | 'to be proved'): Promise<void> => {
  const { work, url } = prepared(next++);
  const { user, project, repository, branch } = work;
  const canaries = new Canaries(scene, work, url);
  const setIn = async (reached: Scope): Promise<void> => {
    if (reached !== scope) return;
    if (proven === 'to be proved') await canaries.prove(set, placeOf(scope, work));
    await canaries.set(set, placeOf(scope, work));
  };
  if (scope === 'home')
    await scene.sh(user, '', `git clone -q ${url} own; cd own; git fetch -q --tags`, scene.server.plainEnv());
  await setIn('home');
  done(await scene.ask('clone', { user, url }));
  expect(await scene.sh(user, `repos/${project}`, 'find .git/hooks 2>/dev/null || :'), 'no hook came with it').toBe('');
  await setIn('clone');
  done(await scene.worktree(work));
  if (scope === 'worktree') await scene.git(user, `repos/${project}`, 'config', 'extensions.worktreeConfig', 'true');
  await setIn('worktree');
  // By the plumbing, which signs nothing and runs no hook but one.
  const identity =
    'export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b.invalid GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b.invalid';
  await scene.sh(user, work.folder, `${identity}; git update-ref HEAD $(git commit-tree -p HEAD -m m 'HEAD^{tree}')`);
  const commit = await scene.git(user, work.folder, 'rev-parse', 'HEAD');
  const [refs, pushed] = [repository.refs(), repository.pushed().length];
  expect(done(await scene.push(work)).commit).toBe(commit);

  expect(repository.refs()).toEqual({ ...refs, [`refs/heads/${branch}`]: commit });
  expect(repository.pushed().slice(pushed)).toEqual([`refs/heads/${branch} ${'0'.repeat(40)} ${commit} options=0`]);
  // Without an askpass program of the request's there is none.
  failed(await scene.push(work, { env: scene.server.env().slice(1) }));
  // Nor is a certificate that nobody vouches for any good.
  const unknown = scene.server.env().filter((entry) => !entry.startsWith('GIT_SSL_CAINFO='));
  expect(failed(await scene.push(work, { env: unknown })).stderr).toContain('certificate');
  expect(canaries.filesWithToken()).toEqual([]);
  expect(scene.counting.reached).toEqual(unreached);
  expect(scene.server.seen.length).toBeGreaterThan(2);
  for (const { path, credentials, headers } of scene.server.seen) {
    expect(path).toMatch(new RegExp(`^/${project.replace('__', '/')}\\.git/`));
    expect(credentials, path).not.toBe('wrong');
    expect(JSON.stringify(headers), path).not.toContain('evil');
  }
  // Nothing that git left behind, nothing that it goes on with.
  expect(scene.leftIn(user)).toEqual(clean(project));
  expect(processesOf(uidOf(user)).filter(({ command }) => /git|canary/.test(command))).toEqual([]);
  const fetched = await scene.sh(
    user,
    `repos/${project}`,
    'git for-each-ref --format="%(refname)" refs/all refs/tags/v1',
  );
  expect(fetched, 'no more was fetched than the branch').toBe('');
};

traps('programs, detours, more refs and options in the user’s own configuration', () =>
  through('home', [...programTraps, ...detourTraps, ...moreRefsTraps], 'proven'),
);
traps('programs in the clone’s configuration', () => through('clone', programTraps, 'to be proved'));
traps('programs and detours in the worktree’s configuration', () =>
  through('worktree', [...programTraps, ...detourTraps], 'proven'),
);
traps('programs that only the home can name, and passwords of the user’s', () =>
  through('home', homeTraps, 'to be proved'),
);
traps('hooks, attributes, and another repository that the clone borrows from', () =>
  through('clone', repositoryTraps, 'to be proved'),
);
traps('detours in the clone’s configuration', () => through('clone', detourTraps, 'to be proved'));
traps('more refs and options in the clone’s configuration', () => through('clone', moreRefsTraps, 'to be proved'));
