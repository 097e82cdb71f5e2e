/**
 * Purpose: the handler of `POST /v1/repo/clone`.
 * Rights: root with the three capabilities, used through a git session only.
 * Called by: dispatch.ts, with params that passed the schema.
 * Fails: with a refusal before anything is begun; a git that fails is a result. What is in `repos` is whole, or not there.
 */
import { Refusal } from '../../protocol/errors.ts';
import type { Params, Result } from '../../protocol/operations/index.ts';
import { repoClone } from '../../protocol/operations/repo-clone.ts';
import { GitCommands } from '../git/commands.ts';
import { checkEnvironment, permittedUrl } from '../git/permitted.ts';
import { type GitDependencies, GitSession } from '../git/session.ts';
import type { HandlerContext } from '../handlers.ts';
import { resultOf } from './fs-results.ts';

/** Makes the handler of `POST /v1/repo/clone`. */
export const cloneHandler =
  (dependencies: GitDependencies) =>
  async ({ user, url, env }: Params<'repo.clone'>, context: HandlerContext): Promise<Result<'repo.clone'>> => {
    const { config, spaces, quota } = dependencies;
    const entries = env ?? [];
    checkEnvironment(entries, config);
    const { href, folder: project } = permittedUrl(url, config);
    const space = spaces.ensure(user);
    await quota.check(user);
    const git = new GitCommands(space);
    const of = { user, space, action: repoClone.audit, entries };
    const path = `repos/${project}`;
    const { result } = await GitSession.run(dependencies, of, context, async (session) => {
      const look = await session.help({ verb: 'repository', project, worktree: null });
      if (resultOf('repository', look, 'file_failed').project !== 'absent') throw new Refusal('exists');
      await session.begin();
      resultOf('scratch', await session.help({ verb: 'scratch', clean: null }), 'uncertain');
      await session.onNetwork(git.clone(href));
      // An empty repository is cloned too.
      if ((await session.ask(git.headOfClone())) !== undefined) await session.local(git.checkOut());
      resultOf('place', await session.help({ verb: 'place', path, project: null }), 'uncertain');
    });
    return { ...result, folder: path };
  };
