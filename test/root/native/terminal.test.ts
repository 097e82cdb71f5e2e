import { createHash, randomBytes } from 'node:crypto';
import { readlinkSync, realpathSync } from 'node:fs';
import { constants } from 'node:os';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { processesOf } from '../../support/processes.ts';
import {
  type Connection,
  left,
  message,
  native,
  type Plan,
  Spawner,
  sanitized,
  wire,
} from '../../support/spawner-client.ts';
import { eventually } from '../../support/wait.ts';

const uid = 900_901;
const { SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGTERM } = constants.signals;
const size = { rows: 24, cols: 80 };
const hash = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

describe.each([
  ['release', native],
  ['sanitized', sanitized],
])('a process, %s', (_name, program) => {
  let spawner: Spawner;
  beforeAll(async () => {
    spawner = await Spawner.start({ program });
    spawner.makeSpace(uid);
  });
  afterEach(() => {
    expect({ said: spawner.log, stayed: left(uid) }).toEqual({ said: '', stayed: [] });
  });
  afterAll(async () => await spawner.stop());

  const env = ['PATH=/usr/bin:/bin', 'PS1=$ ', 'TERM=xterm'];
  const start = async (args: readonly string[], more: Partial<Plan>): Promise<Connection> =>
    await spawner.start({ uid, args, env, outputCap: Number.MAX_SAFE_INTEGER, graceMs: 1_000, ...more });
  const shell = async (script: string, more: Partial<Plan>): Promise<Connection> =>
    await start(['/bin/sh', '-c', script], more);
  const onTerminal = { terminal: size };
  const onPipes = { stdio: wire('STDIO_PIPES') };

  /** Sends it within the window, as the worker does. */
  const paste = async (process: Connection, data: Buffer): Promise<void> => {
    const base = process.taken;
    for (let sent = 0; sent < data.length; ) {
      const piece = data.subarray(sent, sent + 32_768);
      await process.took(base + sent + piece.length - wire('STDIN_WINDOW') / 2);
      process.input(piece);
      sent += piece.length;
    }
  };

  describe('on a terminal', () => {
    test('has it as controlling terminal, as its own, with its size and the usual modes', async () => {
      const script = `tty; stat -c '%u %g %a' "$(tty)"; stty size; stty -a; : >"$(tty)" && echo reopened
        echo by-name >/dev/tty; ps -o tty=,tpgid=,pgid=,sid= -p $$; ls -l /proc/self/fd | wc -l`;
      const { stdout, stderr, exit } = await (await shell(script, onTerminal)).outcome;
      const said = stdout.toString();
      expect(said).toMatch(/^\/dev\/pts\/\d+\r\n900901 900901 600\r\n24 80\r\n/);
      for (const mode of [' echo ', ' icanon ', ' isig ', ' icrnl ', ' onlcr '])
        expect(said.replaceAll('\r\n', ' ')).toContain(mode);
      expect(said).toContain('reopened\r\nby-name\r\n');
      const [, tty, tpgid, pgid, sid] = /(pts\/\d+) +(\d+) +(\d+) +(\d+)/.exec(said) ?? [];
      expect(tty).toBeDefined();
      expect([tpgid, sid]).toEqual([pgid, pgid]);
      // 0, 1, 2, the folder itself, and the line of the total.
      expect(said).toMatch(/\r\n5\r\n$/);
      expect(stderr.length).toBe(0);
      expect(exit).toMatchObject({ reason: wire('END_EXITED'), flags: wire('EXIT_HAS_CODE'), code: 0 });
    });

    test('can close all of it, open it again, and is heard', async () => {
      const { stdout } = await (
        await shell('exec </dev/null >/dev/null 2>&1; sleep 0.2; exec >/dev/tty; echo again', onTerminal)
      ).outcome;
      expect(stdout.toString()).toBe('again\r\n');
    });

    test('is told of a new size', async () => {
      const process = await shell(
        'trap "stty size; exit 5" WINCH; echo ready; while :; do sleep 0.05; done',
        onTerminal,
      );
      await process.said('ready');
      process.resize(65_535, 1);
      const { stdout, exit } = await process.outcome;
      expect(stdout.toString()).toBe('ready\r\n65535 1\r\n');
      expect(exit?.code).toBe(5);
    });

    test('an interactive shell: prompt, echo, Ctrl-C for what is in front, Ctrl-D', async () => {
      const process = await start(['/bin/sh', '-i'], onTerminal);
      await process.said('$ ');
      process.input('sleep 1000; echo "inter"rupted $?\n');
      await eventually('the sleep', () => processesOf(uid).some(({ command }) => command === 'sleep 1000'));
      process.input('\x03');
      await process.said('^C');
      process.input('echo "st"ill here\n');
      await process.said('still here');
      process.input('\x04');
      const { stdout, exit } = await process.outcome;
      expect(stdout.toString()).toContain('sleep 1000; echo "inter"rupted $?\r\n');
      expect(exit?.reason).toBe(wire('END_EXITED'));
    });

    test('a megabyte pasted to one who reads it raw arrives unchanged', async () => {
      const data = randomBytes(1_000_000);
      const process = await shell('stty raw -echo; echo ready; head -c 1000000 | sha256sum', onTerminal);
      await process.said('ready');
      await paste(process, data);
      const { stdout, exit } = await process.outcome;
      expect(stdout.toString()).toContain(hash(data));
      expect(exit?.code).toBe(0);
    });

    test('all that it wrote arrives, also when it leaves at once', async () => {
      for (let i = 0; i < 20; i++) {
        const { stdout } = await (await shell('stty -opost; head -c 60000 /dev/zero', onTerminal)).outcome;
        expect(stdout.length).toBe(60_000);
      }
    });

    test('one that does not read holds up nobody', async () => {
      const process = await shell('stty raw -echo; echo ready; exec sleep 1000', onTerminal);
      await process.said('ready');
      process.input(Buffer.alloc(65_536));
      process.input(Buffer.alloc(65_536));
      process.signal(SIGKILL);
      expect((await process.outcome).exit).toMatchObject({ reason: wire('END_STOPPED'), signal: SIGKILL });
    });

    test('a signal goes to what is in front', async () => {
      const process = await start(['/bin/sh', '-i'], onTerminal);
      await process.said('$ ');
      process.input('sleep 1000\n');
      await eventually('the sleep', () => processesOf(uid).some(({ command }) => command === 'sleep 1000'));
      process.signal(SIGTERM);
      await eventually('its end', () => !processesOf(uid).some(({ command }) => command === 'sleep 1000'));
      process.input('echo "st"ill here; exit 4\n');
      expect((await process.outcome).exit?.code).toBe(4);
    });

    test('is hung up at its end: a shell that is deaf to SIGTERM leaves, with its jobs, well within the grace', async () => {
      const process = await start(['/bin/sh', '-i'], { ...onTerminal, graceMs: 5_000 });
      await process.said('$ ');
      process.input('sleep 1000 &\n');
      await eventually('the job', () => processesOf(uid).some(({ command }) => command === 'sleep 1000'));
      const asked = performance.now();
      process.stop();
      expect((await process.outcome).exit).toMatchObject({ reason: wire('END_STOPPED') });
      expect(performance.now() - asked).toBeLessThan(4_000);
    });
  });

  describe('on pipes', () => {
    test('reads what is sent and its end; both streams are told apart', async () => {
      const data = randomBytes(1_000_000);
      const process = await shell('sha256sum; echo done >&2; exit 3', onPipes);
      await paste(process, data);
      process.input('');
      const { stdout, stderr, exit } = await process.outcome;
      expect(stdout.toString()).toBe(`${hash(data)}  -\n`);
      expect(stderr.toString()).toBe('done\n');
      expect(exit?.code).toBe(3);
    });

    test.each([
      ['', 0],
      [' with an address limit', 1_000_000_000_000_000],
    ])('says that it was executed, before it does anything%s', async (_limit, maxAddress) => {
      const process = await start(['/bin/sleep', '1000'], {
        ...onPipes,
        maxAddress: program === native ? maxAddress : 0,
      });
      await process.until('the start', () => process.started);
      // Its command line comes a little later than the start is told: the kernel closes descriptors before it sets that up.
      const [tool, ...others] = processesOf(uid);
      expect([readlinkSync(`/proc/${tool?.pid}/exe`), others]).toEqual([realpathSync('/bin/sleep'), []]);
      process.signal(SIGKILL);
      await process.outcome;
    });

    test('what cannot be executed is not said to have been', async () => {
      const process = await start(['/nowhere'], onPipes);
      const { failed } = await process.outcome;
      expect(failed).toEqual({ step: wire('STEP_EXEC'), errno: constants.errno.ENOENT });
      expect(process.started).toBe(false);
    });

    test('closes its output while it runs: that is told, and is no end of it', async () => {
      const process = await shell('echo last; exec >/dev/null; read line; exit 2', onPipes);
      await process.until('the end of its output', () => process.ends.length > 0);
      expect(process.ends).toEqual([wire('MSG_STDOUT')]);
      expect(Buffer.concat(process.stdout).toString()).toBe('last\n');
      process.input('go on\n');
      expect((await process.outcome).exit).toMatchObject({ reason: wire('END_EXITED'), code: 2 });
    });

    test('can open its standard input by name', async () => {
      const process = await shell('cat /dev/stdin', onPipes);
      process.input('by name');
      process.input('');
      expect((await process.outcome).stdout.toString()).toBe('by name');
    });

    test('a stop is SIGTERM to all of the tree, and a grace until it is gone', async () => {
      const script = `setsid sh -c 'trap "sleep 0.3; echo child; exit" TERM; echo one; while :; do sleep 0.02; done' &
        trap "echo leader; exit 6" TERM; echo two; while :; do sleep 0.02; done`;
      const process = await shell(script, { ...onPipes, graceMs: 5_000 });
      await process.said('one');
      await process.said('two');
      process.stop();
      const { stdout, exit } = await process.outcome;
      expect(stdout.toString().split('\n').toSorted()).toEqual(['', 'child', 'leader', 'one', 'two']);
      expect(exit).toMatchObject({ reason: wire('END_STOPPED'), flags: wire('EXIT_HAS_CODE'), code: 6 });
    });

    test('what is stopped goes on and takes the SIGTERM', async () => {
      const process = await shell('trap "echo heard; exit 6" TERM; echo ready; kill -STOP $$; sleep 1000', onPipes);
      await process.said('ready');
      await eventually('the stop', () => processesOf(uid).some(({ state }) => state === 'T'));
      process.stop();
      expect((await process.outcome).stdout.toString()).toContain('heard');
    });

    test.each([
      ['SIGINT', SIGINT],
      ['SIGTERM', SIGTERM],
      ['SIGHUP', SIGHUP],
    ])('%s goes to the leader’s group, and is no end of the run by itself', async (_signal, number) => {
      const trap = `trap 'echo heard' ${number}; echo ready; read line; exit 9`;
      const process = await shell(`while :; do ${trap}; done`, onPipes);
      await process.said('ready');
      process.signal(number);
      await process.said('heard');
      process.input('\n');
      const { stdout, exit } = await process.outcome;
      expect(stdout.toString()).toContain('heard');
      expect(exit).toMatchObject({ reason: wire('END_EXITED'), code: 9 });
    });

    test('what is left after the leader’s end is ended', async () => {
      const asked = performance.now();
      const { exit } = await (await shell('sleep 300 & exit 3', { ...onPipes, graceMs: 5_000 })).outcome;
      expect(exit).toMatchObject({ reason: wire('END_EXITED'), code: 3 });
      expect(performance.now() - asked, 'no grace is waited for').toBeLessThan(4_000);
    });
  });

  describe('what is not allowed ends the run', () => {
    const number = (value: number): Buffer => {
      const body = Buffer.alloc(4);
      body.writeUInt32BE(value, 0);
      return body;
    };
    test.each<[string, Partial<Plan>, string, Buffer]>([
      ['a size for a run without a terminal', onPipes, 'MSG_RESIZE', number(0x0018_0050)],
      ['no rows', onTerminal, 'MSG_RESIZE', number(80)],
      ['no columns', onTerminal, 'MSG_RESIZE', number(0x0018_0000)],
      ['a size that is too short', onTerminal, 'MSG_RESIZE', Buffer.alloc(2)],
      ['another signal', onTerminal, 'MSG_SIGNAL', number(SIGQUIT)],
      ['no signal', onTerminal, 'MSG_SIGNAL', number(0)],
      ['a user for a run', onTerminal, 'MSG_USER', number(uid)],
      ['a signal for a run that is waited for', {}, 'MSG_SIGNAL', number(SIGTERM)],
      ['input for a run that is waited for', {}, 'MSG_STDIN', Buffer.from('a')],
    ])('%s', async (_what, streams, kind, body) => {
      const process = await shell('echo ready; exec sleep 1000', streams);
      await process.said('ready');
      expect(processesOf(uid).length).toBeGreaterThan(0);
      process.socket.write(message(wire(kind), body));
      expect((await process.outcome).exit).toBeUndefined();
      await eventually('its end', () => processesOf(uid).length === 0);
    });

    test.each<[string, Partial<Plan>]>([
      ['a terminal without rows', { terminal: { rows: 0, cols: 80 } }],
      ['a terminal without columns', { terminal: { rows: 24, cols: 0 } }],
      ['pipes with a size', { ...onPipes, terminal: size }],
      ['streams that there are not', { stdio: 3 }],
    ])('%s is no plan', async (_what, streams) => {
      const { failed } = await (await shell('exit 0', streams)).outcome;
      expect(failed).toEqual({ step: wire('STEP_PLAN'), errno: constants.errno.EPROTO });
    });

    test('a helper with streams of its own is no plan', async () => {
      const helper = await spawner.helper(['/bin/true'], onPipes);
      expect((await helper.outcome).failed).toEqual({ step: wire('STEP_PLAN'), errno: constants.errno.EPROTO });
    });
  });
});
