/**
 * A container's limit of processes, filled: nobody can fork, the supervisor neither. What fills it must still end.
 * The pids cgroup of version 1 makes it so; where a machine has none, this test fails: it has no other proof.
 */
import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { left, Spawner, wire } from '../../support/spawner-client.ts';
import { eventually } from '../../support/wait.ts';

const uid = 900_711;
const cgroup = `/sys/fs/cgroup/pids/native-test-${process.pid}`;

let spawner: Spawner;
beforeAll(async () => {
  mkdirSync(cgroup);
  spawner = await Spawner.start();
  spawner.makeSpace(uid);
  writeFileSync(`${cgroup}/cgroup.procs`, `${spawner.pid}`);
});
afterAll(async () => {
  await spawner.stop();
  await eventually('an empty cgroup', () => {
    try {
      rmdirSync(cgroup);
      return true;
    } catch {
      return false;
    }
  });
});

const failedForks = (): number =>
  Number(/^max (\d+)/m.exec(readFileSync(`${cgroup}/pids.events`, 'utf8'))?.[1] ?? Number.NaN);

test('a run is ended though no process can be had to end it', async () => {
  const run = await spawner.start({ uid, args: ['/bin/sh', '-c', 'sleep 1000 & sleep 1000 & echo set; wait'] });
  await run.said('set');
  await eventually('both sleep', () => left(uid).length === 3);
  writeFileSync(`${cgroup}/pids.max`, '1');
  const before = failedForks();
  run.stop();
  const { exit } = await run.outcome;
  expect(exit).toMatchObject({ reason: wire('END_STOPPED'), flags: wire('EXIT_HAS_SIGNAL'), signal: 9 });
  expect(left(uid)).toEqual([]);
  expect(failedForks(), 'the supervisor tried to fork').toBeGreaterThan(before);
  // And it is a supervisor again afterwards: the next run is served.
  writeFileSync(`${cgroup}/pids.max`, 'max');
  const next = await spawner.start({ uid, args: ['/bin/true'] });
  expect((await next.outcome).exit).toMatchObject({ reason: wire('END_EXITED'), code: 0 });
});
