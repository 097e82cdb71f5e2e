import { createHash, randomBytes } from 'node:crypto';
import { chownSync, existsSync, rmSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { allProcesses, type ProcessView, processesOf } from '../../support/processes.ts';
import {
  attack,
  type Connection,
  left,
  message,
  native,
  ownLeft,
  type Plan,
  planBody,
  Spawner,
  sanitized,
  wire,
} from '../../support/spawner-client.ts';
import { eventually } from '../../support/wait.ts';

const uid = 900_701;
const window = wire('STDIN_WINDOW');
/** On the command line of all that a test starts as root, so that it can be told from anybody else's. */
const mark = '0.700700';
const marked = (): ProcessView[] => allProcesses().filter(({ command }) => command.includes(mark));
const goneSoon = async (limitMs = 15_000): Promise<void> => {
  await eventually('nothing of the helper', () => marked().length === 0, limitMs);
};

const sleep = `sleep 100${mark}`;

/** Drops when it reads a uid; then gives back what it reads. Another program by then, so that its user may trace it. */
const dropping = [
  '/bin/sh',
  '-c',
  `echo ready; read uid; exec setpriv --reuid=$uid --regid=$uid --clear-groups sh -c 'echo dropped $$; cat; exit 7' ${mark}`,
];
/** Stays root, with a child that is as deaf as itself. */
const rootly = ['/bin/sh', '-c', `trap "" TERM INT HUP; ${sleep} & echo ready; while :; do ${sleep}; done`, mark];

describe.each([
  ['release', native],
  ['sanitized', sanitized],
])('a helper, %s', (_name, program) => {
  let spawner: Spawner;
  /** True when a test has killed it. */
  let spent = true;
  beforeEach(async () => {
    if (!spent) return;
    spawner = await Spawner.start({ program });
    spawner.makeSpace(uid);
    spent = false;
  });
  afterEach(async () => {
    expect(spawner.log).toBe('');
    if (spent) await spawner.stop();
    else await eventually('no supervisor is left', () => spawner.supervisors().length === 0);
    expect(marked()).toEqual([]);
  });
  afterAll(async () => {
    if (!spent) await spawner.stop();
  });

  const started = async (args: readonly string[] = dropping): Promise<Connection> => {
    const helper = await spawner.helper(args);
    await helper.said('ready');
    return helper;
  };

  /** Resolves to its pid, as its namespace counts. */
  const drop = async (helper: Connection): Promise<string> => {
    helper.user(uid);
    helper.input(`${uid}\n`);
    const pid = () => /dropped (\d+)/.exec(Buffer.concat(helper.stdout).toString())?.[1];
    await helper.said('dropped');
    const found = await eventually('its pid', pid);
    expect(processesOf(uid).some(({ command }) => command.includes(mark))).toBe(true);
    return found;
  };

  /** A run of its user beside it. */
  const beside = async (args: readonly string[], more: Partial<Plan> = {}): Promise<Connection> => {
    const run = await spawner.start({ uid, args, maxProcesses: 256, ...more });
    await run.said('set', 20_000);
    return run;
  };

  test('starts as root with the service’s rights and the limits of the plan, and with nothing else', async () => {
    const script = 'cat /proc/self/status /proc/self/limits /proc/self/oom_score_adj; pwd; env; ls -l /proc/self/fd';
    const helper = await spawner.helper(['/bin/sh', '-c', script], {
      env: ['A=b'],
      maxProcesses: 144,
      maxFileSize: 4096,
    });
    const { stdout, stderr, exit } = await helper.outcome;
    const seen = stdout.toString();
    expect(exit).toMatchObject({ reason: wire('END_EXITED'), flags: wire('EXIT_HAS_CODE'), code: 0 });
    expect(stderr.length).toBe(0);
    expect(seen).toMatch(/^Uid:\t0\t0\t0\t0$/m);
    expect(seen).toMatch(/^Gid:\t0\t0\t0\t0$/m);
    expect(seen).toMatch(/^Groups:\t *$/m);
    expect(seen).toMatch(/^CapPrm:\t00000000000000c1$/m);
    expect(seen).toMatch(/^CapEff:\t00000000000000c1$/m);
    expect(seen).toMatch(/^CapInh:\t0+$/m);
    expect(seen).toMatch(/^NoNewPrivs:\t1$/m);
    expect(seen).toMatch(/^Umask:\t0077$/m);
    expect(seen).toMatch(/^SigBlk:\t0+$/m);
    expect(seen).toMatch(/^SigIgn:\t0+$/m);
    expect(seen).toMatch(/^Max processes +144 +144 /m);
    expect(seen).toMatch(/^Max file size +4096 +4096 /m);
    expect(seen).toMatch(/^Max core file size +0 +0 /m);
    expect(seen).toMatch(/^1000\n\/\n(PWD=\/\n)?A=b\n/m);
    const descriptors = [...seen.matchAll(/ (\d+) -> (\S+)$/gm)].map(([, fd, what]) => `${fd} ${what}`);
    expect(descriptors.map((line) => line.replace(/\[\d+\]|\d+\/fd/, ''))).toEqual([
      '0 pipe:',
      '1 pipe:',
      '2 /dev/null',
      '3 /proc/',
    ]);
  });

  test('that cannot be started says at which step', async () => {
    const helper = await spawner.helper(['/nowhere/helper']);
    expect((await helper.outcome).failed).toEqual({ step: wire('STEP_EXEC'), errno: constants.errno.ENOENT });
  });

  test('reads each byte in its order, and the end; what it answers is not held back', async () => {
    const helper = await started();
    await drop(helper);
    const before = Buffer.concat(helper.stdout).length;
    const data = randomBytes(5_000_000);
    let sent = 0;
    const base = helper.taken;
    while (sent < data.length) {
      const piece = data.subarray(sent, sent + wire('RELAY_MAX'));
      // What was not told of yet from before is less than half a window.
      await helper.took(base + sent + piece.length - window / 2);
      helper.input(piece);
      sent += piece.length;
    }
    helper.input('');
    const { stdout, exit } = await helper.outcome;
    const hash = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
    expect(hash(stdout.subarray(before))).toBe(hash(data));
    expect(exit).toMatchObject({ reason: wire('END_EXITED'), flags: wire('EXIT_HAS_CODE'), code: 7 });
    expect(left(uid)).toEqual([]);
  });

  test('that does not read holds up nobody: the window is full, and a stop is still heard', async () => {
    const helper = await started(rootly);
    helper.input(Buffer.alloc(window / 2));
    helper.input(Buffer.alloc(window / 2));
    await helper.took(65_536); // what the pipe holds
    helper.input(Buffer.alloc(65_536));
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(helper.taken).toBe(65_536);
    helper.stop();
    expect((await helper.outcome).exit).toMatchObject({ reason: wire('END_STOPPED'), signal: 9 });
    await goneSoon(0);
  });

  test('that has closed its standard input is sent nothing, and its worker does not wait', async () => {
    const helper = await started(['/bin/sh', '-c', 'exec 0<&-; echo ready; sleep 1000; exit 3', mark]);
    for (let i = 1; i <= 8; i++) {
      helper.input(Buffer.alloc(65_536));
      await helper.took(i * 65_536);
    }
    helper.input('');
    expect(marked().length).toBeGreaterThan(0);
    helper.stop();
    expect((await helper.outcome).exit?.reason).toBe(wire('END_STOPPED'));
  });

  describe('ends exactly', () => {
    const ends: readonly (readonly [string, (helper: Connection) => void])[] = [
      ['asked to', (helper) => helper.stop()],
      ['without its connection', (helper) => helper.socket.destroy()],
      ['without its supervisor', () => process.kill(spawner.supervisors()[0] ?? 0, 'SIGKILL')],
      [
        'without the spawner',
        () => {
          process.kill(spawner.pid, 'SIGKILL');
          spent = true;
        },
      ],
    ];

    test.each(ends)('while it is root, with what it started, %s', async (_how, end) => {
      const helper = await started(rootly);
      await eventually('what it started', () => marked().filter(({ command }) => command === sleep).length === 2);
      expect(new Set(marked().flatMap(({ uids }) => uids))).toEqual(new Set([0]));
      end(helper);
      await helper.outcome;
      await goneSoon();
    });

    test.each(ends)('named but not dropped, %s', async (_how, end) => {
      const helper = await started();
      helper.user(uid);
      helper.input('9'); // half a uid
      end(helper);
      await helper.outcome;
      await goneSoon();
    });

    test.each(ends)('dropped, %s', async (_how, end) => {
      const helper = await started();
      await drop(helper);
      end(helper);
      await helper.outcome;
      await goneSoon();
      // Whoever ended it may still be on the way out.
      await eventually('nothing is left', () => left(uid).length === 0);
    });

    test('in the middle of its drop, whenever that is', async () => {
      for (let i = 0; i < 40; i++) {
        const helper = await started();
        helper.user(uid);
        helper.input(`${uid}\n`);
        await new Promise((resolve) => setTimeout(resolve, i / 8));
        helper.stop();
        const { exit, incomplete } = await helper.outcome;
        expect(marked()).toEqual([]);
        expect(left(uid)).toEqual([]);
        expect({ reason: exit?.reason, signal: exit?.signal, incomplete }).toEqual({
          reason: wire('END_STOPPED'),
          signal: 9,
          incomplete: undefined,
        });
      }
    });

    test('stopped by its user, whose run goes on', async () => {
      const helper = await started();
      const pid = await drop(helper);
      const run = await beside(['/bin/sh', '-c', `kill -STOP ${pid}; echo set; exec sleep 1000`]);
      await eventually('it is stopped', () => marked().some(({ state }) => state === 'T'));
      const start = performance.now();
      helper.stop();
      expect((await helper.outcome).exit).toMatchObject({ reason: wire('END_STOPPED'), signal: 9 });
      expect(performance.now() - start).toBeLessThan(1_000);
      // Whether it sleeps already or is about to.
      await eventually('its run goes on', () => left(uid).join() === 'S sleep 1000');
      run.stop();
      await run.outcome;
    });

    test('traced by its user, whose tracer holds what was killed', async () => {
      const helper = await started();
      const pid = await drop(helper);
      const traced = `grep -q "^TracerPid:.0$" /proc/${pid}/status`;
      // Only once it stands still: a tracer that is just waking up would still take notice of the end.
      const stands = 'until grep -q "^State:.T" /proc/$!/status; do :; done';
      const script = `strace -f -o /dev/null -p ${pid} & while ${traced}; do :; done; kill -STOP $!; ${stands}; echo set; exec sleep 1000`;
      const run = await beside(['/bin/sh', '-c', script]);
      const start = performance.now();
      helper.stop();
      const { exit, incomplete } = await helper.outcome;
      expect({ reason: exit?.reason, incomplete }).toEqual({ reason: wire('END_STOPPED'), incomplete: undefined });
      // It was held, or this test has shown nothing; only then did the run go that held it.
      expect(performance.now() - start).toBeGreaterThan(900);
      expect(performance.now() - start).toBeLessThan(5_000);
      await run.outcome;
      expect(left(uid)).toEqual([]);
    });

    test('beside a fork bomb of its user', async () => {
      const helper = await started();
      await drop(helper);
      const run = await beside([attack, 'bomb'], { maxProcesses: 128 });
      await eventually('the bomb', () => processesOf(uid).length > 60);
      helper.stop();
      const { exit, incomplete } = await helper.outcome;
      expect({ reason: exit?.reason, incomplete }).toEqual({ reason: wire('END_STOPPED'), incomplete: undefined });
      expect(marked()).toEqual([]);
      run.stop();
      await run.outcome;
      expect(left(uid)).toEqual([]);
    });
  });

  test('goes with its user when all of the user is ended', async () => {
    const helper = await started();
    await drop(helper);
    expect((await spawner.end(uid)).ended).toBe(true);
    expect(ownLeft(uid)).toEqual([]);
    expect((await helper.outcome).exit).toMatchObject({ reason: wire('END_EXITED'), signal: 9 });
    expect(left(uid)).toEqual([]);
  });

  test('leaves its user’s files in /tmp alone', async () => {
    const file = `/tmp/helper-test-${uid}`;
    const helper = await started();
    await drop(helper);
    writeFileSync(file, '');
    chownSync(file, uid, uid);
    helper.stop();
    await helper.outcome;
    const kept = existsSync(file);
    rmSync(file, { force: true });
    expect(kept).toBe(true);
  });

  describe('is refused', () => {
    test.each<[string, Partial<Plan>]>([
      ['with a user', { uid }],
      ['with a space', { space: '/work' }],
      ['with a directory', { directory: 'home' }],
      ['with a time limit', { timeLimitMs: 1 }],
      ['with an address limit', { maxAddress: 1 << 30 }],
      ['with a grace', { graceMs: 1 }],
      ['with a relative program', { program: 'sh' }],
    ])('%s', async (_what, more) => {
      const helper = await spawner.helper(['/bin/sh', '-c', 'echo ran', mark], more);
      const { failed, stdout } = await helper.outcome;
      expect(failed).toEqual({ step: wire('STEP_PLAN'), errno: constants.errno.EPROTO });
      expect(stdout.length).toBe(0);
    });

    test('as a run: without a user nothing starts that way', async () => {
      const connection = await spawner.connect();
      connection.socket.write(message(wire('MSG_RUN'), planBody({ uid: 0, args: ['/bin/true'], space: '' }, '')));
      expect((await connection.outcome).failed).toEqual({
        step: wire('STEP_PLAN'),
        errno: constants.errno.EPROTO,
      });
    });

    test.each<[string, (helper: Connection) => void]>([
      ['root as its user', (helper) => helper.user(0)],
      ['a user outside the range', (helper) => helper.user(19_999)],
      [
        'two users',
        (helper) => {
          helper.user(uid);
          helper.user(uid + 1);
        },
      ],
      ['a user cut short', (helper) => helper.socket.write(message(wire('MSG_USER'), Buffer.alloc(3)))],
      ['input over the window', (helper) => Array.from({ length: 4 }, () => helper.input(Buffer.alloc(65_536)))],
      ['a piece that is too long', (helper) => helper.input(Buffer.alloc(65_537))],
      [
        'input after its end',
        (helper) => {
          helper.input('');
          helper.input('x');
        },
      ],
      ['an unknown word', (helper) => helper.socket.write(message(99))],
    ])('%s: that is its end', async (_what, say) => {
      const helper = await started(rootly);
      say(helper);
      expect((await helper.outcome).exit).toBeUndefined();
      await goneSoon();
    });

    test.each<[string, (run: Connection) => void]>([
      ['a user', (run) => run.user(uid)],
      ['input', (run) => run.input('x')],
    ])('%s for a run: that is the run’s end', async (_what, say) => {
      const run = await beside(['/bin/sh', '-c', 'echo set; exec sleep 1000']);
      say(run);
      expect((await run.outcome).exit).toBeUndefined();
      await eventually('nothing of the run', () => left(uid).length === 0);
    });
  });
});
