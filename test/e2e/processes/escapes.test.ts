import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { TestProcess } from '../../support/process-client.ts';
import { processesOf } from '../../support/processes.ts';
import { Service } from '../../support/service.ts';
import { systemTools, uidOf, withoutCounts } from '../../support/user.ts';
import { eventually } from '../../support/wait.ts';

let service: Service;
beforeAll(async () => {
  service = await Service.start({ settings: { ...systemTools('sh'), ...withoutCounts } });
});
afterAll(() => service.stop());

let lastUser = 3_900;

/** Ways out of a tree, and how many processes show that it was taken, by their commands; the leader's tells all of it. */
const escapes: readonly (readonly [how: string, script: string, shows: RegExp, count: number])[] = [
  [
    'double forks into sessions of their own, deaf to hang-ups, without its streams',
    'for i in 1 2 3; do (nohup setsid sh -c "setsid sleep 1000 & wait" >/dev/null 2>&1 </dev/null &); done; sleep 1001',
    /^sleep 100[01]$/,
    4,
  ],
  [
    'many children that fork when they are told to end',
    `for i in 1 2 3 4 5 6 7 8; do
       sh -c 'trap "setsid sleep 1002 & sleep 1002 & sleep 1002 &" TERM; : fork-on-TERM; while :; do sleep 1; done' &
     done; trap "" TERM; wait; sleep 1001`,
    /fork-on-TERM/,
    9,
  ],
  [
    'all are deaf to what they can be deaf to, and one is stopped',
    `trap "" HUP INT QUIT TERM USR1 USR2 PIPE; (setsid sleep 1000 &); sh -c 'kill -STOP $$; :' &
     sleep 1001; sleep 1002`,
    /^sleep 100[01]$|kill -STOP/,
    4,
  ],
  [
    'a chain of which each forks the next and is gone',
    `next() { sleep 0.01; next & }; next & exec sleep 1000`,
    /^(sleep 1000|sleep 0\.01)$/,
    2,
  ],
];

describe.each<[streams: string, tty: boolean, asked: object]>([
  ['pipes', false, {}],
  ['a terminal', true, {}],
  ['pipes, at once', false, { signal: 'SIGKILL' }],
])('on %s', (_streams, tty, asked) => {
  test.each(escapes)('%s: nothing is left when terminate is answered', async (_how, script, shows, count) => {
    const user = lastUser++;
    const process = await TestProcess.start(service.client, user, 'sh', ['-c', script], tty);
    const there = () => processesOf(uidOf(user)).filter(({ command }) => shows.test(command)).length === count;
    await eventually('it has escaped', there);
    const { status, text } = await process.ask('terminate', { ...asked });
    expect(processesOf(uidOf(user))).toEqual([]);
    expect(status, text).toBe(200);
    expect(JSON.parse(text)).toMatchObject({ termination: { reason: 'terminated', exitCode: null } });
    expect((await service.exec(user, 'sh', ['-c', 'exit 3'])).body).toMatchObject({ exitCode: 3 });
    expect(processesOf(uidOf(user))).toEqual([]);
  });
});
