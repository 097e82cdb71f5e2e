import { afterAll, beforeAll, expect, test } from 'vitest';
import { TestProcess } from '../../support/process-client.ts';
import { allProcesses, processesOf } from '../../support/processes.ts';
import { Service } from '../../support/service.ts';
import { systemTools, uidOf, withoutCounts } from '../../support/user.ts';
import { eventually } from '../../support/wait.ts';

let service: Service;
beforeAll(async () => {
  service = await Service.start({ settings: { ...systemTools('sh'), ...withoutCounts } });
});
afterAll(() => service.stop());

/** What runs: its script, whether on a terminal, and how many sleeps it consists of beside its leader. */
const kinds: readonly (readonly [script: string, tty: boolean, sleeps: number])[] = [
  ['sleep 1001 & sleep 1002 & sleep 1003', false, 3],
  ['(setsid sh -c "sleep 1001; :" &) ; setsid sleep 1002 & (sleep 1003 &) ; sleep 1004', false, 4],
  ['trap "" TERM HUP INT; sleep 1001 & while :; do sleep 1002; done', false, 2],
  ['nohup sleep 1001 >/dev/null 2>&1 & (setsid sleep 1002 &) ; trap "" TERM HUP; sleep 1003; :', true, 3],
  ['sleep 1001 & kill -STOP $$', false, 1],
];
let lastUser = 3_800;

interface Tree {
  readonly user: number;
  readonly process: TestProcess;
}

const alive = (trees: readonly Tree[]) => {
  const uids = new Set(trees.map(({ user }) => uidOf(user)));
  return allProcesses().filter((one) => one.uids.some((uid) => uids.has(uid)));
};

/** Ten processes of ten users, and all that belongs to them is there. */
const startTen = async (): Promise<Tree[]> => {
  const chosen = [...kinds, ...kinds];
  const trees = await Promise.all(
    chosen.map(async ([script, tty]) => {
      const user = lastUser++;
      return { user, process: await TestProcess.start(service.client, user, 'sh', ['-c', script], tty) };
    }),
  );
  const sleeps = chosen.reduce((sum, [, , count]) => sum + count, 0);
  await eventually('all of them', () => {
    const found = alive(trees);
    return (
      found.filter(({ command }) => /^sleep 100\d$/.test(command)).length === sleeps &&
      found.filter(({ state }) => state === 'T').length === 2
    );
  });
  return trees;
};

const freeAgain = async ({ user }: Tree): Promise<void> => {
  const { process } = await eventually('its lock is given back', async () => {
    const { status, body, text } = await service.client.post('/v1/process/start', {
      workspaceId: String(user),
      tool: 'sh',
      args: ['-c', 'exit 3'],
    });
    if (status === 409) expect(body.error).toBe('busy');
    else expect(status, text).toBe(200);
    return (
      status === 200 && {
        process: new TestProcess(service.client, (JSON.parse(text) as { processId: string }).processId),
      }
    );
  });
  expect(await process.ended()).toMatchObject({ reason: 'exit', exitCode: 3 });
};

test.each([
  ['gateway', 'SIGKILL'],
  ['gateway', 'SIGTERM'],
  ['worker', 'SIGKILL'],
  ['worker', 'SIGTERM'],
] as const)(
  'the %s gets a %s while ten processes run: all is gone within 2 s, and none is said to run',
  async (part, signal) => {
    const trees = await startTen();
    const before = service.part(part).pid;
    process.kill(before, signal);
    await eventually('all of them gone', () => alive(trees).length === 0, 2_000);
    await service.replaced(part, before);
    for (const tree of trees) {
      const { status, text, body } = await tree.process.ask('status');
      if (part === 'gateway') {
        // The worker lives on, and so do its handles.
        expect(status, text).toBe(200);
        expect(JSON.parse(text)).toMatchObject({
          state: 'exited',
          termination: { reason: 'link_lost', exitCode: null },
        });
        const line = await service.audited((found) => found.action === 'process.exit' && found['user'] === tree.user);
        expect(line).toMatchObject({ status: 'error', reason: 'link_lost' });
      } else expect([status, body.error]).toEqual([404, 'process_not_found']);
      await freeAgain(tree);
    }
  },
);

test('what a leader leaves behind is gone, and its exit told, within a second', async () => {
  const user = lastUser++;
  const started = await TestProcess.start(service.client, user, 'sh', ['-c', 'sleep 300 & exit 3'], false);
  const { endedAt, ...how } = await started.ended();
  expect(how).toMatchObject({ reason: 'exit', exitCode: 3 });
  expect(processesOf(uidOf(user))).toEqual([]);
  expect(Date.parse(endedAt) - Date.parse((await started.status()).startedAt)).toBeLessThan(1_000);
});
