import type { FsCall, FsVerb } from '../../../../helper/contract/fs.ts';
import { type ErrorCode, Refusal } from '../../../../protocol/errors.ts';
import { cloneHandler } from '../../../../worker/operations/repo-clone.ts';
import { pushHandlers } from '../../../../worker/operations/repo-push.ts';
import { worktreeHandlers } from '../../../../worker/operations/repo-worktree.ts';
import type { LaunchPlan } from '../../../../worker/runs/plan.ts';
import { runExit, type Scripted, workflowParts } from './support.ts';

export const id = '0f8fad5b-d9cb-469f-a165-70867728950e';
export const commit = 'c'.repeat(40);
export const url = 'https://git.example/group/proj.git';
export const env = ['TOKEN=secret'];

/** The scratch folder of user 7. */
export const scratch = '/var/tmp/u20007/tmp/.git-workflow';

/** The line of the new branch, checked out in the new worktree. */
export const atTree = `refs/heads/chat/${id}\0${commit}\0${scratch}/tree\0\n`;

/** What git is asked to do: the first word that is no option, or value of one, before it. */
const wordOf = ({ args }: LaunchPlan): string => {
  const words = args.slice(args[1] === '-C' ? 3 : 1).filter((word) => !word.startsWith('--'));
  return words[0] === 'worktree' ? `worktree ${words[1]}` : (words[0] ?? '');
};

/** What git says: one answer, or one after another, of which the last one stays. */
type Says = Scripted | readonly [Scripted, ...Scripted[]];

/** The end of a git with a status. */
export const exits = (exitCode: number, stdout = ''): Scripted => ({
  stdout,
  end: { kind: 'exit', exit: runExit({ exitCode }) },
});

/** What is looked up of the clone, and of what was fetched or gathered. */
export const inClone = `rev-parse ${commit}^{commit}`;
export const fetched = 'rev-parse refs/heads/base^{commit}';

/** How the branches stand: before and after the worktree that is gone was taken off the list, and when the new one is made. */
export const branches = (before = '', after = before, made = atTree): readonly [Scripted, ...Scripted[]] => [
  { stdout: before },
  { stdout: after },
  { stdout: made },
];

/**
 * The handlers, on stand-ins of which git says what a test lets it say: to a word, or to a word with its last argument.
 * The clone has the commit when it was taken over.
 */
export const setup = (says: Readonly<Record<string, Says>> = {}, look: object = {}) => {
  const parts = workflowParts();
  const answers: Record<string, Says> = {
    'rev-parse': { stdout: `${commit}\n` },
    [inClone]: [exits(1), { stdout: `${commit}\n` }],
    'symbolic-ref': { stdout: `refs/heads/chat/${id}\n` },
    config: { stdout: `remote.origin.url\n${url}\0` },
    'for-each-ref': branches(),
    ...says,
  };
  const times = new Map<Says, number>();
  parts.runs.script = (plan) => {
    const said = answers[`${wordOf(plan)} ${plan.args.at(-1)}`] ?? answers[wordOf(plan)] ?? {};
    if (!('length' in said)) return said;
    const time = times.get(said) ?? 0;
    times.set(said, time + 1);
    return said[Math.min(time, said.length - 1)] ?? {};
  };
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

/** Lets the helper refuse one verb. */
export const refuse = ({ helpers }: ReturnType<typeof setup>, verb: FsVerb, code: ErrorCode): void => {
  const { answer } = helpers;
  helpers.answer = (call) => {
    if (call.verb === verb) throw new Refusal(code);
    return answer(call);
  };
};
