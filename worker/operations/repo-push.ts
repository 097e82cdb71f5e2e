/**
 * Purpose: the handlers of `POST /v1/repo/push` and `agent-push`.
 * Rights: root with the three capabilities, used through a git session only.
 * Called by: dispatch.ts, with params that passed the schema.
 * Fails: with a refusal when the worktree is not what it was made as; a git that fails, and a remote that refuses, is a
 * result. What is pushed is the commit that was looked at, to the one ref that the ids name.
 */
import { Refusal } from '../../protocol/errors.ts';
import type { Params, Result } from '../../protocol/operations/index.ts';
import { repoAgentPush } from '../../protocol/operations/repo-agent-push.ts';
import { commit as commitId } from '../../protocol/operations/repo-fields.ts';
import { repoPush } from '../../protocol/operations/repo-push.ts';
import { GitCommands } from '../git/commands.ts';
import { checkBranch, checkEnvironment } from '../git/permitted.ts';
import { remoteOf } from '../git/remote.ts';
import { type GitDependencies, GitSession } from '../git/session.ts';
import { agentTree, conversationTree, type TreeOf } from '../git/tree-of.ts';
import type { HandlerContext, Handlers } from '../handlers.ts';
import { resultOf } from './fs-results.ts';

/** A branch to be pushed. */
interface Wanted extends TreeOf {
  readonly user: number;
  readonly project: string;
  readonly entries: readonly string[];
  readonly action: 'repo.push' | 'repo.agent_push';
}

const push = async (
  dependencies: GitDependencies,
  { user, project, entries, action, folder, branch }: Wanted,
  context: HandlerContext,
): Promise<Result<'repo.push'>> => {
  const { config, spaces } = dependencies;
  checkEnvironment(entries, config);
  const space = spaces.ensure(user);
  const git = new GitCommands(space);
  let commit: string | undefined;
  const { result } = await GitSession.run(dependencies, { user, space, action, entries }, context, async (session) => {
    const look = await session.help({ verb: 'repository', project, worktree: folder });
    if (resultOf('repository', look, 'file_failed').worktree !== 'linked') throw new Refusal('no_worktree');
    await session.begin();
    checkBranch(await session.ask(git.currentBranch(folder)), branch, config);
    commit = commitId.safeParse(await session.ask(git.tipOf(folder, branch))).data;
    if (commit === undefined) return session.fail();
    const { href, format } = await remoteOf(session, git, project, config);
    // Made only now: whatever of the user's could have run has ended.
    const clean = { format, borrows: project };
    resultOf('scratch', await session.help({ verb: 'scratch', clean }), 'uncertain');
    // A user can write an object that isn't what its name says, which could make git take a remote that has moved on for
    // an ancestor. What is pushed comes from a repository that has none of theirs.
    await session.local(git.gather(commit), 'file');
    if ((await session.ask(git.fetchedCommit())) !== commit) return session.fail();
    await session.onNetwork(git.push(href, commit, branch));
  });
  return { ...result, branch, commit: commit ?? null };
};

type PushHandlers = Pick<Handlers, 'repo.push' | 'repo.agent_push'>;

/** Makes the handlers of the routes that push. */
export const pushHandlers = (dependencies: GitDependencies): PushHandlers => ({
  'repo.push': ({ env, conversation, ...params }: Params<'repo.push'>, context) => {
    const tree = conversationTree(conversation, params.project);
    return push(dependencies, { ...params, ...tree, entries: env ?? [], action: repoPush.audit }, context);
  },
  'repo.agent_push': ({ env, id, ...params }: Params<'repo.agent_push'>, context) => {
    const tree = agentTree(id, params.project);
    return push(dependencies, { ...params, ...tree, entries: env ?? [], action: repoAgentPush.audit }, context);
  },
});
