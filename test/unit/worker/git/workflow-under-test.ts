import type { FsCall } from '../../../../helper/contract/fs.ts';
import { cloneHandler } from '../../../../worker/operations/repo-clone.ts';
import { pushHandlers } from '../../../../worker/operations/repo-push.ts';
import { worktreeHandlers } from '../../../../worker/operations/repo-worktree.ts';
import type { LaunchPlan } from '../../../../worker/runs/plan.ts';
import { type Scripted, workflowParts } from './support.ts';

export const id = '0f8fad5b-d9cb-469f-a165-70867728950e';
export const commit = 'c'.repeat(40);
export const url = 'https://git.example/group/proj.git';
export const env = ['TOKEN=secret'];

/** What git is asked to do: the first word that is no option, or value of one, before it. */
const wordOf = ({ args }: LaunchPlan): string => {
  const words = args.slice(args[1] === '-C' ? 3 : 1).filter((word) => !word.startsWith('--'));
  return words[0] === 'worktree' ? `worktree ${words[1]}` : (words[0] ?? '');
};

/** The handlers, on stand-ins of which git says what a test lets it say. */
export const setup = (says: Readonly<Record<string, Scripted>> = {}, look: object = {}) => {
  const parts = workflowParts();
  const answers: Record<string, Scripted> = {
    'rev-parse': { stdout: `${commit}\n` },
    'symbolic-ref': { stdout: `refs/heads/chat/${id}\n` },
    config: { stdout: `remote.origin.url\n${url}\0` },
    'for-each-ref': { stdout: '' },
    ...says,
  };
  parts.runs.script = (plan) => answers[wordOf(plan)] ?? {};
  parts.helpers.answer = ({ verb }: FsCall) => (verb === 'repository' ? look : {});
  const handlers = {
    clone: cloneHandler(parts.dependencies),
    ...worktreeHandlers(parts.dependencies),
    ...pushHandlers(parts.dependencies),
  };
  const words = (): string[] => parts.runs.plans.map(wordOf);
  return { ...parts, handlers, words };
};

/** Those that had the token, or could have gone on the network, and where they worked. */
export const withToken = (plans: readonly LaunchPlan[]): (readonly [string, string])[] =>
  plans
    .filter(({ environment }) => environment.some((entry) => /^TOKEN=|^GIT_ALLOW_PROTOCOL=https$/.test(entry)))
    .map((plan) => [wordOf(plan), plan.args.slice(1, 4).join(' ')] as const);

/** The scratch folder of user 7. */
export const scratch = '/var/tmp/u20007/tmp/.git-workflow';
