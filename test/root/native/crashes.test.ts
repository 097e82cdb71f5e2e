import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { allProcesses } from '../../support/processes.ts';
import {
  attack,
  type Connection,
  left,
  native,
  noneLeft,
  ownLeft,
  Spawner,
  sanitized,
  wire,
} from '../../support/spawner-client.ts';
import { eventually } from '../../support/wait.ts';

const uid = 900_601;
const other = 900_602;

describe.each([
  ['release', native],
  ['sanitized', sanitized],
])('when something of the service dies, %s', (_name, program) => {
  let spawner: Spawner;
  beforeEach(async () => {
    spawner = await Spawner.start({ program });
    spawner.makeSpace(uid);
    spawner.makeSpace(other);
  });
  afterEach(async () => await spawner.stop());

  const held = async (user: number, way = 'daemons', more = {}): Promise<Connection> => {
    const run = await spawner.start({ uid: user, args: [attack, way], ...more });
    await run.said('set');
    return run;
  };

  test.each(['daemons', 'chains', 'namespaces'])(
    'a supervisor: its run (%s) ends, others go on, the uid is seen empty',
    async (way) => {
      const run = await held(uid, way, { maxProcesses: 64 });
      const [supervisor] = spawner.supervisors();
      const bystander = await held(other);
      process.kill(supervisor ?? 0, 'SIGKILL');
      const { exit, failed } = await run.outcome;
      expect({ exit, failed }).toEqual({ exit: undefined, failed: undefined });
      const { ended } = await spawner.end(uid);
      expect(ended).toBe(true);
      expect(ownLeft(uid)).toEqual([]);
      await noneLeft(uid);
      expect(left(other).length).toBe(9);
      expect(bystander.socket.destroyed).toBe(false);
      expect((await spawner.run({ uid, args: ['/bin/true'] })).exit?.code).toBe(0);
      bystander.stop();
      expect((await bystander.outcome).exit?.reason).toBe(wire('END_STOPPED'));
    },
  );

  test('a supervisor, and nobody asks for the end: the spawner ends its run', async () => {
    await held(uid);
    process.kill(spawner.supervisors()[0] ?? 0, 'SIGKILL');
    await noneLeft(uid);
  });

  test('the spawner: every run ends', async () => {
    const runs = [await held(uid), await held(other)];
    process.kill(spawner.pid, 'SIGKILL');
    await Promise.all([noneLeft(uid), noneLeft(other)]);
    for (const run of runs)
      expect((await run.outcome).exit).toMatchObject({ reason: wire('END_SPAWNER_LOST'), signal: 9 });
  });

  test('the spawner, with a grace that is longer than it may be then', async () => {
    await held(uid, 'daemons', { graceMs: 5_000 });
    process.kill(spawner.pid, 'SIGKILL');
    await noneLeft(uid, 4_000);
  });

  test('the worker: every run ends, and the spawner', async () => {
    await Promise.all([held(uid), held(other)]);
    process.kill(spawner.standInPid(), 'SIGKILL');
    await Promise.all([noneLeft(uid), noneLeft(other)]);
    await eventually('no spawner', () => !existsSync(`/proc/${spawner.pid}`), 15_000);
  });

  test('the lifeline: every run ends, the spawner last and in order', async () => {
    const runs = [await held(uid), await held(other)];
    spawner.closeLifeline();
    await Promise.all([noneLeft(uid), noneLeft(other)]);
    for (const run of runs) expect((await run.outcome).exit?.reason).toBe(wire('END_SPAWNER_LOST'));
    expect(await spawner.exited).toMatchObject({ code: 0, signal: null });
    expect(spawner.log).toBe('');
  });

  test('the lifeline and a supervisor at once', async () => {
    await held(uid, 'chains', { maxProcesses: 64 });
    process.kill(spawner.supervisors()[0] ?? 0, 'SIGKILL');
    spawner.closeLifeline();
    await noneLeft(uid);
    expect(await spawner.exited).toMatchObject({ code: 0 });
  });

  test('signals of a terminal or an operator don\u2019t reach spawner and supervisors', async () => {
    const run = await held(uid);
    const pids = [spawner.pid, ...spawner.supervisors()];
    expect(pids.length).toBe(2);
    for (const signal of [
      'SIGINT',
      'SIGTERM',
      'SIGHUP',
      'SIGQUIT',
      'SIGPIPE',
      'SIGUSR1',
      'SIGUSR2',
      'SIGALRM',
      'SIGTSTP',
      'SIGTTIN',
      'SIGVTALRM',
    ])
      for (const pid of pids) process.kill(pid, signal);
    run.stop();
    expect((await run.outcome).exit?.reason).toBe(wire('END_STOPPED'));
    expect((await spawner.run({ uid, args: ['/bin/true'] })).exit?.code).toBe(0);
  });
});

describe('the spawner', () => {
  const open: Spawner[] = [];
  afterEach(async () => {
    for (const spawner of open.splice(0)) await spawner.stop();
  });
  const started = async (options = {}): Promise<Spawner> => {
    const spawner = await Spawner.start(options);
    open.push(spawner);
    spawner.makeSpace(uid);
    return spawner;
  };

  test('serves its worker only: a stranger that is root is turned away', async () => {
    const spawner = await started();
    const stranger = createConnection(join(spawner.folder, 'socket/s'));
    stranger.on('error', () => undefined);
    let got = 0;
    stranger.on('data', (bytes) => {
      got += bytes.length;
    });
    await new Promise((resolve) => stranger.once('close', resolve));
    expect(got).toBe(0);
    expect(spawner.supervisors()).toEqual([]);
    expect(statSync(join(spawner.folder, 'socket/s')).mode & 0o777).toBe(0o600);
  });

  test('is alone in its work dir, until the last run of an earlier one is gone', async () => {
    const first = await started();
    const folder = first.folder;
    const refused = await Spawner.refused({ folder, keepFolder: true });
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.log).toContain('another worker, or runs of an earlier one, still use this work dir');
    expect(lstatSync(join(folder, 'lock')).mode & 0o777).toBe(0o600);
  });

  test('waits for what an earlier one still ends', async () => {
    const first = await started();
    await (
      await first.start({
        uid,
        args: ['/bin/sh', '-c', 'trap "" TERM; echo set; while :; do sleep 1; done'],
        graceMs: 1_000,
      })
    ).said('set');
    process.kill(first.pid, 'SIGKILL');
    const start = performance.now();
    const second = await Spawner.start({ folder: first.folder, keepFolder: true });
    open.unshift(second);
    expect(performance.now() - start).toBeGreaterThan(500);
    expect(left(uid)).toEqual([]);
    expect((await second.run({ uid, args: ['/bin/true'] })).exit?.code).toBe(0);
  });

  test('gives its lock to no tool', async () => {
    const spawner = await started();
    const run = await spawner.start({ uid, args: ['/bin/sh', '-c', 'echo set; exec sleep 1000'] });
    await run.said('set');
    const lock = statSync(join(spawner.folder, 'lock'));
    const holders = allProcesses().filter(({ pid }) => {
      try {
        return readdirSync(`/proc/${pid}/fd`).some((fd) => {
          const held = statSync(`/proc/${pid}/fd/${fd}`, { throwIfNoEntry: false });
          return held?.ino === lock.ino && held.dev === lock.dev;
        });
      } catch {
        return false;
      }
    });
    const kinds = holders.map(({ uids }) => ((uids[0] ?? 0) >= wire('KILLER_UID_FIRST') ? 'supervisor' : `${uids[0]}`));
    expect(kinds.toSorted()).toEqual(['0', 'supervisor']);
    run.stop();
    await run.outcome;
  });

  test.each<[string, (folder: string) => void, string]>([
    [
      'a socket folder that others may enter',
      (folder) => chmodSync(join(folder, 'socket'), 0o711),
      'the folder of the socket must be root\u2019s',
    ],
    [
      'a socket folder that is a link',
      (folder) => {
        rmSync(join(folder, 'socket'), { recursive: true });
        mkdirSync(join(folder, 'real'), { mode: 0o700 });
        symlinkSync('real', join(folder, 'socket'));
      },
      'the folder of the socket must be root\u2019s',
    ],
    [
      'a lock that is a link',
      (folder) => symlinkSync('elsewhere', join(folder, 'lock')),
      'the lock file can\u2019t be opened',
    ],
    [
      'a lock that others may open',
      (folder) => {
        writeFileSync(join(folder, 'lock'), '');
        chmodSync(join(folder, 'lock'), 0o644);
      },
      'the lock file must be a plain file of root\u2019s',
    ],
    ['a lock that is a folder', (folder) => mkdirSync(join(folder, 'lock')), 'the lock file can\u2019t be opened'],
  ])('refuses %s', async (_what, spoil, sentence) => {
    const folder = Spawner.newFolder();
    spoil(folder);
    const { code, log } = await Spawner.refused({ folder });
    expect(code).toBe(1);
    expect(log.replaceAll("'", '\u2019')).toContain(sentence);
  });

  test.each([
    ['more capabilities than it needs', ['--bounding-set=-all,+setuid,+setgid,+chown,+kill']],
    ['fewer', ['--bounding-set=-all,+setuid,+setgid']],
    ['a user', ['--reuid=900699', '--regid=900699', '--clear-groups']],
  ])('refuses to start with %s', async (_what, rights) => {
    const { code, log } = await Spawner.refused({ rights });
    expect(code).toBe(1);
    expect(log).toContain('must be root with exactly the capabilities chown, setgid and setuid');
  });

  test('a thousand short runs leave nothing', async () => {
    const spawner = await started();
    const descriptors = () => readdirSync(`/proc/${spawner.pid}/fd`).length;
    const memory = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${spawner.pid}/status`, 'utf8'))?.[1]);
    const children = () => readFileSync(`/proc/${spawner.pid}/task/${spawner.pid}/children`, 'utf8');
    const atRest = async () => await eventually('no child of the spawner', () => children() === '');
    await spawner.run({ uid, args: ['/bin/true'] });
    await atRest();
    const before = { descriptors: descriptors(), memory: memory() };
    let wrong = 0;
    const worker = async () => {
      for (let i = 0; i < 125; i++) {
        const { exit, clean } = await spawner.run({ uid, args: ['/bin/true'], maxProcesses: 0 });
        if (exit?.flags !== wire('EXIT_HAS_CODE') || exit.code !== 0 || !clean) wrong++;
      }
    };
    await Promise.all(Array.from({ length: 8 }, worker));
    expect(wrong).toBe(0);
    await atRest();
    expect(left(uid)).toEqual([]);
    expect(descriptors()).toBe(before.descriptors);
    expect(memory() - before.memory).toBeLessThan(256);
    expect(spawner.log).toBe('');
  });
});
