import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { exec } from '../../../protocol/operations/exec.ts';
import { repoAgentPush } from '../../../protocol/operations/repo-agent-push.ts';
import { repoAgentWorktree } from '../../../protocol/operations/repo-agent-worktree.ts';
import { repoClone } from '../../../protocol/operations/repo-clone.ts';
import { repoPush } from '../../../protocol/operations/repo-push.ts';
import { repoWorktree } from '../../../protocol/operations/repo-worktree.ts';
import { idOf, projectOf, Upstream } from '../upstream.ts';
import type { ChaosRequest, ChaosRow, Effect, EffectPlace } from './row.ts';

const strikers = ['gateway', 'worker', 'strace', 'harness'] as const;
const whole = ['first.txt', 'last.txt', '.git'];

/** Nothing, a part, or all of what is checked out there. */
const filesAt = (folder: string): Effect => {
  const there = (name: string): boolean => existsSync(join(folder, name));
  return { begun: existsSync(folder) ? 1 : 0, completed: whole.every(there) ? 1 : 0 };
};

const says = (body: Readonly<Record<string, unknown>>): boolean =>
  body['ok'] === true || body['outputExpired'] === true;

export const cloneRows: readonly ChaosRow[] = [
  {
    what: 'repo.clone',
    holds: false,
    strikers,
    route: repoClone.route,
    body: ({ user, canary }) => ({ user, url: Upstream.now.url(canary), env: Upstream.now.env }),
    effect: ({ home, canary }) => filesAt(join(home, 'repos', projectOf(canary))),
    succeeded: says,
  },
];

/** A clone as the service makes it, by hand; with a worktree, one commit ahead. */
const clone = ({ user, canary }: EffectPlace, worktree?: { folder: string; branch: string }): ChaosRequest => {
  const script = `set -eu; export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
    git init -q -b main "repos/$1"; cd "repos/$1"; git remote add origin "$2"
    git commit -q --allow-empty -m begun; test -z "$3" || { git worktree add -q "$HOME/$3" -b "$4"; git -C "$HOME/$3" commit -q --allow-empty -m more; }`;
  const args = [
    '-c',
    script,
    'sh',
    projectOf(canary),
    Upstream.now.url(canary),
    worktree?.folder ?? '',
    worktree?.branch ?? '',
  ];
  return { route: exec.route, body: { user, tool: 'sh', args } };
};

/** A worktree's place and branch by its id, and how a request names it. */
interface Naming {
  readonly parent: string;
  readonly branch: string;
  readonly naming: Readonly<Record<string, string>>;
}

const worktreeRow = (route: string, what: string, treeOf: (id: string) => Naming): ChaosRow => ({
  what,
  holds: false,
  strikers,
  route,
  prepare: (place) => clone(place),
  body: ({ user, canary }) => ({
    user,
    project: projectOf(canary),
    ...treeOf(idOf(canary)).naming,
    baseBranch: 'main',
    env: Upstream.now.env,
  }),
  effect: ({ home, canary }) => filesAt(join(home, 'work', treeOf(idOf(canary)).parent, projectOf(canary))),
  succeeded: says,
});

const pushRow = (route: string, what: string, treeOf: (id: string) => Naming): ChaosRow => ({
  what,
  holds: false,
  strikers,
  route,
  prepare: (place) => {
    const { parent, branch } = treeOf(idOf(place.canary));
    return clone(place, { folder: `work/${parent}/${projectOf(place.canary)}`, branch });
  },
  body: ({ user, canary }) => ({
    user,
    project: projectOf(canary),
    ...treeOf(idOf(canary)).naming,
    env: Upstream.now.env,
  }),
  effect: ({ canary }) => {
    const there = Upstream.now.has(treeOf(idOf(canary)).branch) ? 1 : 0;
    return { begun: there, completed: there };
  },
  succeeded: says,
});

const conversation = (id: string): Naming => ({ parent: id, branch: `chat/${id}`, naming: { conversation: id } });
const agent = (id: string): Naming => ({ parent: `agent-${id}`, branch: `agent-id/${id}`, naming: { id } });

export const worktreeRows = [worktreeRow(repoWorktree.route, 'repo.worktree', conversation)];
export const agentWorktreeRows = [worktreeRow(repoAgentWorktree.route, 'repo.agent_worktree', agent)];
export const pushRows = [pushRow(repoPush.route, 'repo.push', conversation)];
export const agentPushRows = [pushRow(repoAgentPush.route, 'repo.agent_push', agent)];
