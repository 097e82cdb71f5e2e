/**
 * A run that can't be ended for a while. What makes it so: the freezer of cgroup v1, where a frozen process takes no
 * signal, SIGKILL neither, until it is thawed. Where a machine has none, this test fails: it has no other proof.
 */
import { mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { processesOf } from '../../support/processes.ts';
import { left, ownLeft, Spawner, wire } from '../../support/spawner-client.ts';
import { eventually } from '../../support/wait.ts';

const uid = 900_721;
const cgroup = `/sys/fs/cgroup/freezer/native-test-${process.pid}`;

let spawner: Spawner;
beforeAll(async () => {
  mkdirSync(cgroup);
  spawner = await Spawner.start();
  spawner.makeSpace(uid);
});
afterAll(async () => {
  writeFileSync(`${cgroup}/freezer.state`, 'THAWED');
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

test('what can\u2019t be ended is told after five seconds, tried on, and told again when it is over', async () => {
  const run = await spawner.start({ uid, args: ['/bin/sh', '-c', 'echo set; exec sleep 1000'] });
  await run.said('set');
  const [tool] = processesOf(uid);
  writeFileSync(`${cgroup}/cgroup.procs`, `${tool?.pid}`);
  writeFileSync(`${cgroup}/freezer.state`, 'FROZEN');

  const start = performance.now();
  run.stop();
  const told = await run.incomplete(8_000);
  expect(performance.now() - start).toBeGreaterThan(4_900);
  expect(performance.now() - start).toBeLessThan(6_500);
  expect(told).toMatchObject({ reason: wire('END_STOPPED'), flags: 0 });
  expect(ownLeft(uid).length).toBe(1);
  expect(run.socket.destroyed).toBe(false);

  // Whoever asks for the end of that uid is not told that it came.
  const asked = spawner.end(uid);
  expect(await Promise.race([asked, new Promise((resolve) => setTimeout(resolve, 300, 'waiting'))])).toBe('waiting');

  writeFileSync(`${cgroup}/freezer.state`, 'THAWED');
  const { exit } = await run.outcome;
  expect(exit).toMatchObject({ reason: wire('END_STOPPED'), flags: wire('EXIT_HAS_SIGNAL'), signal: 9 });
  // First the answer to MSG_END: until then its killers, which carry the uid too, may still be there.
  expect((await asked).ended).toBe(true);
  expect(left(uid)).toEqual([]);
});
