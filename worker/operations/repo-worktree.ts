/**
 * Purpose: the handlers of `POST /v1/repo/worktree` and `agent-worktree`.
 * Rights: root with the three capabilities, used through a git session only.
 * Called by: dispatch.ts, with params that passed the schema.
 * Fails: with a refusal before anything is begun; a git that fails is a result. What is in `work` is whole, or not there.
 */
import { scratchFolder, scratchNames } from '../../helper/contract/fs.ts';
import { Refusal } from '../../protocol/errors.ts';
import type { Params, Result } from '../../protocol/operations/index.ts';
import { repoAgentWorktree } from '../../protocol/operations/repo-agent-worktree.ts';
import { commit as commitId } from '../../protocol/operations/repo-fields.ts';
import { repoWorktree } from '../../protocol/operations/repo-worktree.ts';
import { isAt, isOtherName, lostTip, nextLostRef } from '../git/branch-state.ts';
import { GitCommands, trackingRef } from '../git/commands.ts';
import { checkEnvironment } from '../git/permitted.ts';
import { remoteOf } from '../git/remote.ts';
import { type GitDependencies, GitSession } from '../git/session.ts';
import { agentTree, conversationTree, type TreeOf } from '../git/tree-of.ts';
import type { HandlerContext, Handlers } from '../handlers.ts';
import { resultOf } from './fs-results.ts';

/** A worktree to be made. */
interface Wanted extends TreeOf {
  readonly user: number;
  readonly project: string;
  readonly baseBranch: string;
  readonly entries: readonly string[];
  readonly action: 'repo.worktree' | 'repo.agent_worktree';
}

/** The steps of one session. @returns the commit that the worktree is at */
const steps =
  ({ config }: GitDependencies, git: GitCommands, { project, baseBranch, folder, branch }: Wanted) =>
  async (session: GitSession): Promise<string> => {
    const look = await session.help({ verb: 'repository', project, worktree: folder });
    const there = resultOf('repository', look, 'file_failed');
    if (there.project !== 'clone') throw new Refusal('no_project');
    if (there.worktree !== 'absent') throw new Refusal('exists');
    await session.begin();
    const { href, format } = await remoteOf(session, git, project, config);

    resultOf('scratch', await session.help({ verb: 'scratch', clean: { format, borrows: null } }), 'uncertain');
    await session.onNetwork(git.fetch(href, baseBranch));
    const commit = commitId.safeParse(await session.ask(git.fetchedCommit())).data;
    if (commit === undefined) return session.fail();
    const lostRef = nextLostRef((await session.ask(git.branches(project, branch))) ?? session.fail(), branch);

    session.changing();
    const refs = [`refs/heads/${branch}`, trackingRef(baseBranch), lostRef];
    resultOf('unregister', await session.help({ verb: 'unregister', project, worktree: folder, refs }), 'uncertain');
    await session.local(git.prune(project));
    if ((await session.ask(git.hasCommit(project, commit))) === undefined) {
      await session.local(git.takeOver(project), 'file');
      // git has been seen to end with status 0 here and to have taken nothing over.
      if ((await session.ask(git.hasCommit(project, commit))) === undefined) return session.fail();
    }
    // The user may have a ref in the way of this one, which nothing here needs.
    await session.attempt(git.track(project, baseBranch, commit));
    // Only now: until then a worktree that is gone may still have had the branch.
    const branches = (await session.ask(git.branches(project, branch))) ?? session.fail();
    const tip = lostTip(branches, branch, commit);
    if (isOtherName(branches, branch)) await session.local(git.removeOtherName(project, branch));
    else if (tip !== undefined) await session.local(git.keepTip(project, lostRef, tip));
    await session.local(git.addWorktree(project, branch, commit));
    // A filter of the user's can have put it on something else meanwhile.
    const made = (await session.ask(git.branches(project, branch))) ?? session.fail();
    if (!isAt(made, branch, commit, `/${scratchFolder}/${scratchNames.tree}`)) return session.fail();
    resultOf('place', await session.help({ verb: 'place', path: folder, project }), 'uncertain');
    return commit;
  };

const makeWorktree = async (
  dependencies: GitDependencies,
  wanted: Wanted,
  context: HandlerContext,
): Promise<Result<'repo.worktree'>> => {
  const { config, spaces, quota } = dependencies;
  const { user, entries, action, folder, branch } = wanted;
  checkEnvironment(entries, config);
  const space = spaces.ensure(user);
  await quota.check(user);
  const made = steps(dependencies, new GitCommands(space), wanted);
  const { result, value } = await GitSession.run(dependencies, { user, space, action, entries }, context, made);
  return { ...result, folder, branch, commit: value ?? null, workspaceId: `${user}:${folder}` };
};

type WorktreeHandlers = Pick<Handlers, 'repo.worktree' | 'repo.agent_worktree'>;

/** Makes the handlers of the routes that make worktrees. */
export const worktreeHandlers = (dependencies: GitDependencies): WorktreeHandlers => ({
  'repo.worktree': ({ env, conversation, ...params }: Params<'repo.worktree'>, context) => {
    const tree = conversationTree(conversation, params.project);
    return makeWorktree(dependencies, { ...params, ...tree, entries: env ?? [], action: repoWorktree.audit }, context);
  },
  'repo.agent_worktree': ({ env, id, ...params }: Params<'repo.agent_worktree'>, context) => {
    const tree = agentTree(id, params.project);
    const action = repoAgentWorktree.audit;
    return makeWorktree(dependencies, { ...params, ...tree, entries: env ?? [], action }, context);
  },
});
