import { existsSync, lstatSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { holdRun } from '../../support/held-run.ts';
import { processesOf } from '../../support/processes.ts';
import { Service } from '../../support/service.ts';
import { homeOf, spaceOf, systemTools, uidOf } from '../../support/user.ts';
import { eventually } from '../../support/wait.ts';

let service: Service;
let next = 111_400;

beforeAll(async () => {
  service = await Service.start({ settings: { ...systemTools('sh'), RUNNER_MAX_RUNS: '2' } });
});
afterAll(() => service.stop());

interface Usage {
  readonly bytes: number;
  readonly files: number;
  readonly dirs: number;
  readonly links: number;
  readonly top: readonly { readonly name: string; readonly bytes: number; readonly files: number }[];
  readonly groups: readonly { readonly path: string }[];
}

const usageOf = async (user: number): Promise<Usage> => {
  const { status, text, headers } = await service.client.post('/v1/usage', { user });
  expect({ status, text }).toMatchObject({ status: 200 });
  expect(headers['operation-id']).toBeUndefined();
  return JSON.parse(text) as Usage;
};

/** Runs a script for a user. */
const run = async (user: number, script: string): Promise<void> => {
  const { status, text } = await service.exec(user, 'sh', ['-ec', script]);
  expect({ status, text }).toMatchObject({ status: 200, text: expect.stringContaining('"exitCode":0') });
};

describe('usage', () => {
  it('takes nothing from a run that its user has beside it', async () => {
    const user = next++;
    const file = `/tmp/usage-test-${uidOf(user)}`;
    const script = `echo kept > ${file}; echo set; while [ ! -e done ]; do sleep 0.05; done; cat ${file}`;
    await run(user, ':');
    const answer = service.exec(user, 'sh', ['-c', script]);
    await eventually('the file is there', () => existsSync(file));
    expect((await usageOf(user)).files).toBe(0);
    expect(existsSync(file)).toBe(true);
    writeFileSync(join(homeOf(service, user), 'done'), '');
    expect((await answer).body).toMatchObject({ exitCode: 0, stdout: 'set\nkept\n' });
    // A run's own end takes it away.
    expect(existsSync(file)).toBe(false);
  });

  it('of the seed’s example is exact, and goes down when something is deleted', async () => {
    const user = next++;
    await run(user, 'printf 0123456789 >a; printf abc >b; printf xy >../tmp/c; ln -s a link');
    expect(await usageOf(user)).toEqual({
      user,
      bytes: 15,
      files: 3,
      dirs: 4,
      links: 1,
      truncated: false,
      limitBytes: 10 * 1024 ** 3,
      over: false,
      top: [
        { name: 'home', bytes: 13, files: 2 },
        { name: 'tmp', bytes: 2, files: 1 },
      ],
      groups: [],
      groupsTruncated: false,
    });
    await run(user, 'rm a');
    expect(await usageOf(user)).toMatchObject({ bytes: 5, files: 2 });
    const line = await service.audited((one) => one.action === 'usage' && one['user'] === user);
    expect(Object.keys(line).sort()).toEqual(['action', 'ms', 'status', 'time', 'user']);
  });

  it('of a user without a space is zeros, and makes none', async () => {
    const user = next++;
    const before = readdirSync(service.workDir);
    expect(await usageOf(user)).toMatchObject({ bytes: 0, files: 0, dirs: 0, links: 0, top: [], groups: [] });
    expect(readdirSync(service.workDir)).toEqual(before);
  });

  it('tells clones and worktrees, whatever their names', async () => {
    const user = next++;
    await run(user, 'mkdir -p repos/g__p work/c/g__p "work/c/$(printf "\\377\\n")"; printf 123 >repos/g__p/f');
    const { groups } = await usageOf(user);
    expect(groups).toEqual([
      { path: 'home/repos/g__p', bytes: 3, files: 1 },
      { path: 'home/work/c/g__p', bytes: 0, files: 0 },
      { path: 'home/work/c/\ufffd', bytes: 0, files: 0 },
    ]);
  });

  it('counts what is hidden, and leaves it as it was', async () => {
    const user = next++;
    await run(user, 'mkdir -p a/b ../tmp/c; printf 12345 >a/b/f; printf 1 >../tmp/c/f; chmod 0 a/b a ../tmp/c');
    expect(await usageOf(user)).toMatchObject({ bytes: 6, files: 2 });
    expect(lstatSync(`${homeOf(service, user)}/a`).mode & 0o7777).toBe(0);
    expect(lstatSync(`${spaceOf(service, user)}/tmp/c`).mode & 0o7777).toBe(0);
  });

  it('that can’t be measured is refused, and no process of it is left', async () => {
    const user = next++;
    await run(user, 'p=a; for n in $(seq 600); do p=$p/a; done; mkdir -p $p');
    const { status, body } = await service.client.post('/v1/usage', { user });
    expect([status, body.error]).toEqual([500, 'usage_failed']);
    expect(await service.audited((line) => line.action === 'usage' && line['user'] === user)).toMatchObject({
      status: 'error',
      reason: 'usage_failed',
    });
    // The count that the service makes by itself, some time after a run, comes to the same end.
    await eventually('no process of it is left', () => processesOf(uidOf(user)).length === 0);
  });

  it('does not wait for the user’s run, nor for a turn among all runs', async () => {
    const [first, second] = [next++, next++];
    await run(first, 'printf 12345 >f');
    const [one, two] = [await holdRun(service, first), await holdRun(service, second)];
    try {
      const other = next++;
      expect((await service.exec(other, 'sh', ['-c', 'exit'])).body.error).toBe('overloaded');
      expect(await usageOf(first)).toMatchObject({ bytes: 5, files: 1 });
      expect(await usageOf(other)).toMatchObject({ bytes: 0 });
    } finally {
      one.release();
      two.release();
    }
    expect([(await one.answer).status, (await two.answer).status]).toEqual([200, 200]);
  });

  it('names nothing of a user’s in audit or log', async () => {
    const user = next++;
    await run(user, 'mkdir -p repos/planted-name/planted-deep; chmod 0 repos/planted-name');
    await usageOf(user);
    await service.audited((line) => line.action === 'usage' && line['user'] === user);
    expect(existsSync(`${homeOf(service, user)}/repos/planted-name`)).toBe(true);
    expect([...service.auditText, ...service.log].join('\n')).not.toContain('planted');
  });

  it.each([
    ['no user', {}],
    ['a user too large', { user: 1_000_001 }],
    ['a field more', { user: 1, path: 'x' }],
  ])('with %s is a bad request', async (_name, body) => {
    const { status, body: answer } = await service.client.post('/v1/usage', body);
    expect([status, answer.error]).toEqual([400, 'bad_request']);
  });
});

describe('many at once', () => {
  it('are all answered', async () => {
    const users = Array.from({ length: 40 }, () => next++);
    for (const user of users.slice(0, 20)) await run(user, 'printf 123 >f');
    const answers = await Promise.all([...users, ...users].map((user) => usageOf(user)));
    expect(answers.map(({ bytes }) => bytes)).toEqual([...users, ...users].map((_user, at) => (at % 40 < 20 ? 3 : 0)));
  });
});
