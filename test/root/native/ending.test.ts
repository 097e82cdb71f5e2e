import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { processesOf } from '../../support/processes.ts';
import {
  attack,
  type Connection,
  left,
  native,
  noneLeft,
  type Plan,
  Spawner,
  sanitized,
  wire,
} from '../../support/spawner-client.ts';
import { eventually } from '../../support/wait.ts';

const uid = 900_301;
const bystander = 900_302;

interface Attack {
  readonly way: string;
  readonly count?: number;
  readonly maxProcesses?: number;
  /** The leader exits by itself, or stays until the limit. */
  readonly exits?: true;
}

const essential: Attack[] = [
  { way: 'hold', exits: true },
  { way: 'daemons' },
  { way: 'stop-self' },
  { way: 'bomb', maxProcesses: 128 },
  { way: 'chains', maxProcesses: 128 },
  { way: 'clone-parent', exits: true },
  { way: 'traced-by-parent' },
  { way: 'zombie-leader', maxProcesses: 128 },
  { way: 'namespaces', count: 4, maxProcesses: 128 },
];

const thorough: Attack[] = [
  ...essential,
  { way: 'chains-and-exit', maxProcesses: 128, count: 32, exits: true },
  { way: 'own-subreaper' },
  { way: 'clone-parent', exits: true, count: 100 },
  { way: 'clone-parent-chains', maxProcesses: 64 },
  { way: 'odd-exit-signals', count: 64 },
  { way: 'vfork-waiters', count: 32 },
  { way: 'tracers', count: 32 },
];

describe.each([
  ['release', native, thorough],
  ['sanitized', sanitized, essential],
])('the end of a run, %s', (_name, program, attacks) => {
  let spawner: Spawner;
  let other: Connection;
  beforeAll(async () => {
    spawner = await Spawner.start({ program });
    spawner.makeSpace(uid);
    spawner.makeSpace(bystander);
    other = await spawner.start({
      uid: bystander,
      args: ['/bin/sh', '-c', 'echo set; exec sleep 1000'],
      maxProcesses: 0,
    });
    await other.said('set');
    await eventually('it sleeps', () => left(bystander).join() === 'S sleep 1000');
  });
  afterAll(async () => {
    other.stop();
    await other.outcome;
    await spawner.stop();
  });

  /* Whatever a test does to one user, another user's run goes on. */
  afterEach(() => {
    expect(other.socket.destroyed).toBe(false);
    expect(left(bystander).map((line) => line.slice(2))).toEqual(['sleep 1000']);
  });

  const argsOf = ({ way, count }: Attack) => [attack, way, ...(count === undefined ? [] : [String(count)])];
  const room = async (ms: number) => await new Promise((resolve) => setTimeout(resolve, ms));

  test.each(attacks)('$way $count, at most $maxProcesses', async (one) => {
    const run = await spawner.start({ uid, args: argsOf(one), maxProcesses: one.maxProcesses ?? 256 });
    await run.said('set', 20_000);
    if (!one.exits) await room(300); // for the attack to grow
    const start = performance.now();
    if (!one.exits) run.stop();
    const { exit, incomplete } = await run.outcome;
    const seen = left(uid);
    expect(seen).toEqual([]);
    expect(performance.now() - start).toBeLessThan(5_000);
    expect(incomplete).toBeUndefined();
    expect(exit).toMatchObject(
      one.exits
        ? { reason: wire('END_EXITED'), flags: wire('EXIT_HAS_CODE'), code: 0, signal: 0 }
        : { reason: wire('END_STOPPED'), flags: wire('EXIT_HAS_SIGNAL'), code: 0, signal: 9 },
    );
  });

  const timed = async (one: Attack, more: Partial<Plan> & { readonly timeLimitMs: number }) => {
    const start = performance.now();
    const { exit } = await spawner.run({ uid, args: argsOf(one), ...more });
    expect(left(uid)).toEqual([]);
    expect(performance.now() - start).toBeLessThan(more.timeLimitMs + 5_000);
    expect(exit?.reason).toBe(wire('END_TIMEOUT'));
    return exit;
  };

  // So many busy processes leave little of the machine to this test and to the supervisor; how long the kernel takes to
  // take thousands of processes apart is the machine's matter. That it comes to an end, with nothing left, is not.
  test.each<Attack>(program === native ? [{ way: 'bomb' }, { way: 'chains-and-exit', count: 3000, exits: true }] : [])(
    '$way with 4,000 processes',
    async (one) => {
      const { stdout, exit } = await spawner.run({
        uid,
        args: argsOf(one),
        maxProcesses: 4_000,
        timeLimitMs: one.exits ? 0 : 2_000,
      });
      expect(left(uid)).toEqual([]);
      expect(stdout.toString()).toBe('set\n');
      expect(exit?.reason).toBe(wire(one.exits ? 'END_EXITED' : 'END_TIMEOUT'));
    },
  );

  test('with a user that slows its supervisor down', async () => {
    await timed({ way: 'slow-down', count: 24 }, { maxProcesses: 128, timeLimitMs: 1_500 });
  });

  test.each(['stop', 'drop'] as const)('asked for by a %s of the connection', async (how) => {
    const run = await spawner.start({ uid, args: [attack, 'daemons'] });
    await run.said('set');
    expect(processesOf(uid).length).toBeGreaterThan(8);
    if (how === 'stop') run.stop();
    else run.socket.destroy();
    const { exit } = await run.outcome;
    if (how === 'stop') expect(exit).toMatchObject({ reason: wire('END_STOPPED'), signal: 9 });
    await noneLeft(uid, 5_000);
  });

  test('a worker that breaks the protocol ends its run', async () => {
    for (const bytes of [Buffer.alloc(8, 0xff), Buffer.from([0, 0, 0, 2, 0, 0, 0, 1, 0])]) {
      const run = await spawner.start({ uid, args: [attack, 'daemons'] });
      await run.said('set');
      run.socket.write(bytes);
      const { exit } = await run.outcome;
      expect(exit).toBeUndefined();
      expect(left(uid)).toEqual([]);
    }
  });

  describe('the grace', () => {
    const careful = ['/bin/sh', '-c', 'trap "echo tidy; exit 5" TERM; echo set; sleep 1000 & wait'];
    test('lets the leader tidy up', async () => {
      const { exit, stdout } = await spawner.run({ uid, args: careful, timeLimitMs: 400, graceMs: 2_000 });
      expect(stdout.toString()).toBe('set\ntidy\n');
      expect(exit).toMatchObject({ reason: wire('END_TIMEOUT'), flags: wire('EXIT_HAS_CODE'), code: 5 });
      expect(left(uid)).toEqual([]);
    });
    test('is not given when it is 0', async () => {
      const { exit, stdout } = await spawner.run({ uid, args: careful, timeLimitMs: 400 });
      expect(stdout.toString()).toBe('set\n');
      expect(exit).toMatchObject({ reason: wire('END_TIMEOUT'), flags: wire('EXIT_HAS_SIGNAL'), signal: 9 });
    });
    test('is bounded for one that does not listen', async () => {
      const exit = await timed({ way: 'daemons' }, { timeLimitMs: 300, graceMs: 300 });
      expect(exit?.signal).toBe(9);
      expect(exit?.timeUs).toBeGreaterThan(590_000);
    });
  });

  test('an exit code is only told when one was seen', async () => {
    const { exit } = await spawner.shell(uid, 'kill -SEGV $$');
    expect(exit).toMatchObject({ flags: wire('EXIT_HAS_SIGNAL'), code: 0, signal: 11 });
    const coded = await spawner.shell(uid, 'exit 255');
    expect(coded.exit).toMatchObject({ flags: wire('EXIT_HAS_CODE'), code: 255, signal: 0 });
  });

  test('time, memory and processor time are those of the run', async () => {
    const { exit } = await spawner.shell(uid, 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; sleep 0.3');
    expect(exit?.timeUs).toBeGreaterThan(300_000);
    expect(exit?.cpuUs).toBeGreaterThan(10_000);
    expect(exit?.cpuUs).toBeLessThan(exit?.timeUs ?? 0);
    const large = await spawner.shell(uid, 'x=$(head -c 30000000 /dev/zero | tr "\\0" x); printf %s "$x" | wc -c');
    expect(large.stdout.toString()).toBe('30000000\n');
    expect(large.exit?.maxResident).toBeGreaterThan(30_000_000);
    expect(large.exit?.maxResident).toBeLessThan(500_000_000);
  });
});
