import { execFileSync } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, statfsSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { statusOf } from '../../support/keyed.ts';
import { Service } from '../../support/service.ts';
import { homeOf, systemTools } from '../../support/user.ts';
import { eventually } from '../../support/wait.ts';

const user = 430_001;
let service: Service;
let state: string | undefined;

afterEach(async () => {
  service.process.kill('SIGTERM');
  await service.exited;
  if (state !== undefined) execFileSync('umount', [state]);
  service.destroy();
});

/** A service whose ledger lies on a disk of its own of this size. */
const startOn = async (megabytes: number): Promise<string> => {
  const folder = execFileSync('mktemp', ['-d', '/tmp/runner-test-XXXXXXXX'], { encoding: 'utf8' }).trim();
  execFileSync('chmod', ['711', folder]);
  mkdirSync(join(folder, 'run'), { mode: 0o750 });
  const place = join(folder, 'state');
  mkdirSync(place, { mode: 0o700 });
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=0700`, 'tmpfs', place]);
  state = place;
  service = await Service.start({ folder, settings: { ...systemTools('sh', 'true'), RUNNER_STATE_DIR: place } });
  return place;
};

/** Fills the disk to its last block. */
const fill = (place: string): void => {
  const file = openSync(join(place, 'filler'), 'w');
  const block = Buffer.alloc(65_536, 1);
  try {
    for (;;) writeSync(file, block);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  } finally {
    closeSync(file);
  }
  expect(statfsSync(place).bavail).toBe(0);
};

test('a full disk: it goes on with the room that it kept free', async () => {
  const place = await startOn(40);
  const before = await service.exec(user, 'true');
  fill(place);
  const users = Array.from({ length: 8 }, (_, index) => user + index);
  for (let round = 0; round < 40; round += 1) {
    const answers = await Promise.all(users.map((each) => service.exec(each, 'true')));
    expect(answers.map(({ status }) => status)).toEqual(users.map(() => 200));
    const last = answers[0]?.body.operationId ?? '';
    expect((await statusOf(service, { operationId: last })).body).toMatchObject({ state: 'finished', outcome: 'ok' });
  }
  expect((await statusOf(service, { operationId: before.body.operationId ?? '' })).status).toBe(200);
});

test('a full disk and no room kept: mutations are refused before any effect, reads go on, and it recovers', async () => {
  const place = await startOn(2);
  expect(service.log.join('\n')).toContain('no room that the ledger could keep free');
  const before = await service.exec(user, 'true');
  expect(before.status, before.text).toBe(200);
  fill(place);
  const canary = join(homeOf(service, user), 'canary');
  const refused = await eventually(
    'a refusal',
    async () => {
      const answer = await service.exec(user, 'sh', ['-c', 'true']);
      return answer.status !== 200 && answer;
    },
    30_000,
  );
  expect(refused).toMatchObject({ status: 503, body: { error: 'ledger_unavailable' } });
  expect(await service.exec(user, 'sh', ['-c', 'touch canary'])).toMatchObject({
    status: 503,
    body: { error: 'ledger_unavailable' },
  });
  expect(existsSync(canary)).toBe(false);
  expect((await statusOf(service, { operationId: before.body.operationId ?? '' })).body.state).toBe('finished');
  execFileSync('mount', ['-o', 'remount,size=64m', place]);
  const again = await eventually('an answer again', async () => {
    const answer = await service.exec(user, 'sh', ['-c', 'touch canary']);
    return answer.status === 200 && answer;
  });
  expect(again.body.exitCode).toBe(0);
  expect(existsSync(canary)).toBe(true);
});
