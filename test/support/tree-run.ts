import type { Answer } from './http.ts';
import { processesOf } from './processes.ts';
import type { Service } from './service.ts';
import { uidOf } from './user.ts';
import { eventually } from './wait.ts';

/** A run with a whole tree: a leader, a child, one in a session of its own, and an orphan. Ends only when ended. */
export interface TreeRun {
  readonly user: number;
  /** What came back: an answer, or `broken` when the connection broke before one came. */
  readonly answer: Promise<Answer | 'broken'>;
  /** pid of the supervisor, the parent of the leader. */
  readonly supervisor: number;
}

const script =
  'sleep 1001 & setsid sleep 1002 & (setsid sh -c "sleep 1003; :" &) ; trap "" TERM; sleep 1004; sleep 1005';

/** Starts a tree for a user and waits until all of it is there. Needs the tool `sh`. */
export const startTree = async (service: Service, user: number): Promise<TreeRun> => {
  const answer = service.exec(user, 'sh', ['-c', script]).catch(() => 'broken' as const);
  const all = await eventually(`the whole tree of ${user}`, () => {
    const found = processesOf(uidOf(user));
    const sleepers = found.filter(({ command }) => /^sleep 100[1-4]$/.test(command));
    return sleepers.length === 4 && found;
  });
  const leader = all.find(({ command }) => command.startsWith('/bin/sh -c sleep 1001'));
  if (!leader) throw new Error('the tree has no leader');
  return { user, answer, supervisor: leader.parent };
};

/** Waits until nothing of a user runs any more, zombies included. */
export const treeGone = async (user: number, limitMs = 2_000): Promise<void> => {
  await eventually(`nothing of user ${user} is left`, () => processesOf(uidOf(user)).length === 0, limitMs);
};
