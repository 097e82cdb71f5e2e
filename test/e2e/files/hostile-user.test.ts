import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ask, contentOf, helpersOf } from '../../support/files.ts';
import { holdRun } from '../../support/held-run.ts';
import type { Answer } from '../../support/http.ts';
import { processesOf, treeOf } from '../../support/processes.ts';
import { reach, reachTool } from '../../support/reach.ts';
import { Service } from '../../support/service.ts';
import { systemTools, uidOf } from '../../support/user.ts';
import { eventually } from '../../support/wait.ts';

/** Room for a helper to be started anew, twice, while other tests keep the machine busy. */
const deadlineMs = 10_000;
/** What an answer may take beyond it: two ends of helpers, on a busy machine. */
const slackMs = 10_000;
let service: Service;
let next = 452_000;

beforeAll(async () => {
  service = await Service.start({
    settings: {
      RUNNER_HELPERS_STANDBY: '2',
      RUNNER_TOOLS: `${systemTools('sh').RUNNER_TOOLS},${reachTool}`,
      RUNNER_FILE_TIMEOUT_SEC: String(deadlineMs / 1_000),
      RUNNER_MAX_PROCESSES: '20',
    },
  });
});
afterAll(() => service.stop());

const write = (user: number, path: string, content: string) => ask(service, 'files/write', { user, path, content });

/** One after the other until told to end: what each read came to, and the longest time that one took. */
const readsWhile = async (user: number, going: () => boolean) => {
  const codes: (string | number)[] = [];
  let longestMs = 0;
  while (going()) {
    const startedAt = performance.now();
    const { status, body } = await ask(service, 'files/read', { user, path: 'f' });
    longestMs = Math.max(longestMs, performance.now() - startedAt);
    codes.push(body.error ?? status);
  }
  return { codes, longestMs };
};

/** Goes on for three seconds, and does this to each helper that it finds (the pattern is not one for its own command line). */
const attacks = (signal: string) => `
  end=$(($(date +%s) + 3))
  while [ $(date +%s) -lt $end ]; do
    for p in /proc/[0-9]*; do
      case "$(tr '\\0' ' ' <$p/cmdline 2>/dev/null)" in
        *helper/fs/mai[n].js*) kill -${signal} \${p#/proc/} && echo hit ;;
      esac
    done
  done 2>/dev/null
  exit 0`;
const fork = '(for n in $(seq 40); do sleep 3 & echo hit; done) 2>/dev/null; exec sleep 3';

test.each([
  ['kills', attacks('KILL')],
  ['stops', attacks('STOP')],
  ['takes all processes from', fork],
])('a user who %s the own helpers: every look is answered in time, others notice nothing', async (_what, script) => {
  const [user, other] = [next++, next++];
  for (const each of [user, other]) expect((await write(each, 'f', 'here')).status).toBe(200);
  let over = false;
  const run: Promise<Answer> = service.exec(user, 'sh', ['-c', script]).finally(() => {
    over = true;
  });
  const [own, theirs] = await Promise.all([readsWhile(user, () => !over), readsWhile(other, () => !over)]);
  const { body } = await run;
  expect(body.exitCode, body.stderr).toBe(0);
  // It did what it was to do.
  expect(body.stdout).toMatch(/^(hit\n)+$/);
  expect(new Set(theirs.codes)).toEqual(new Set([200]));
  expect(theirs.longestMs).toBeLessThan(deadlineMs);
  for (const code of own.codes) expect([200, 'file_failed', 'overloaded', 'worker_unavailable']).toContain(code);
  expect(own.longestMs).toBeLessThan(deadlineMs + slackMs);
  // Nothing of it is left over.
  expect(await contentOf(service, user, 'f')).toBe('here');
  expect((await write(user, 'f', 'more')).status).toBe(200);
});

test('what a run did to the helper is gone with the run: it gets another one', async () => {
  const user = next++;
  await write(user, 'f', '1');
  const [before] = helpersOf(user);
  if (!before) throw new Error('no helper is kept');
  const { body } = await service.exec(user, 'sh', ['-c', `kill -STOP ${before.pid}`]);
  expect(body.exitCode).toBe(0);
  const startedAt = performance.now();
  expect((await write(user, 'f', '2')).status).toBe(200);
  expect(performance.now() - startedAt).toBeLessThan(deadlineMs);
  await eventually('the stopped one is gone', () => !helpersOf(user).some(({ pid }) => pid === before.pid));
  expect(helpersOf(user)).toHaveLength(1);
});

test('no run can trace its user’s helper, and none reaches one of another user’s or one that stands by', async () => {
  const [user, other] = [next++, next++];
  await write(user, 'f', '1');
  await write(other, 'f', '1');
  const held = await holdRun(service, user);
  // The reads’ own helper: the one of the changes went with nothing, since no run has ended.
  expect((await ask(service, 'files/read', { user, path: 'f' })).status).toBe(200);
  const [own, theirs] = [helpersOf(user), helpersOf(other)];
  held.release();
  await held.answer;
  expect([own.length, theirs.length]).toEqual([2, 1]);
  await write(user, 'f', '2');
  const [mine] = await eventually('the new one alone', () => {
    const found = helpersOf(user);
    return found.length === 1 && found;
  });
  // This service's own: another one's may be gone at any time.
  const standing = await eventually('one stands by', () =>
    treeOf(service.process.pid ?? -1).find(({ command, uids }) => uids[0] === 0 && command.includes('helper/fs/main')),
  );
  expect(await reach(service, user, 'trace', String(mine?.pid))).toBe('EPERM');
  for (const pid of [theirs[0]?.pid, standing.pid].map(String)) {
    expect(await reach(service, user, 'trace', pid)).toBe('EPERM');
    expect(await reach(service, user, 'signal', pid, '9')).toBe('EPERM');
    expect(await reach(service, user, 'peek', pid)).toBe('EPERM');
    expect(await reach(service, user, 'limit', pid)).toBe('EPERM');
  }
  expect(helpersOf(other).map(({ pid }) => pid)).toEqual(theirs.map(({ pid }) => pid));
});

test('a helper that is lost in the middle of a change: uncertain, only when it is gone; then another one serves', async () => {
  const user = next++;
  await write(user, 'f', 'old');
  const [helper] = helpersOf(user);
  if (!helper) throw new Error('no helper is kept');
  process.kill(helper.pid, 'SIGSTOP');
  const startedAt = performance.now();
  const { status, body } = await write(user, 'f', 'new');
  expect([status, body.error]).toEqual([502, 'uncertain']);
  expect(performance.now() - startedAt).toBeLessThan(deadlineMs + slackMs);
  expect(helpersOf(user)).toEqual([]);
  expect(await contentOf(service, user, 'f')).toBe('old');
  expect((await write(user, 'f', 'new')).status).toBe(200);
});

test('no helper is kept for longer than it is of use, and nobody’s is left when the service is gone', async () => {
  const user = next++;
  const short = await Service.start({ settings: { RUNNER_HELPERS_IDLE_SEC: '1', RUNNER_HELPERS_MAX: '2' } });
  try {
    const users = [user, ...Array.from({ length: 4 }, () => next++)];
    for (const each of users) expect((await ask(short, 'files/list', { user: each })).status).toBe(200);
    expect(users.flatMap(helpersOf).length).toBeLessThanOrEqual(2);
    await delay(1_000);
    await eventually('all idle ones are gone', () => users.flatMap(helpersOf).length === 0);
    expect((await ask(short, 'files/list', { user })).status).toBe(200);
  } finally {
    await short.stop();
  }
  expect(processesOf(uidOf(user))).toEqual([]);
});
