import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { built, native, Spawner, sanitized, wire } from '../../support/spawner-client.ts';
import { eventually } from '../../support/wait.ts';

const uid = 900_101;

const fields = (text: string): Record<string, string> =>
  Object.fromEntries(
    text.split('\n').map((line) => [line.split(':')[0] ?? '', line.split(':').slice(1).join(':').trim()]),
  );

describe.each([
  ['release', native],
  ['sanitized', sanitized],
])('what a tool sees, %s', (_name, program) => {
  let spawner: Spawner;
  beforeAll(async () => {
    spawner = await Spawner.start({ program, wrapper: [built('odd-start')] });
    spawner.makeSpace(uid);
  });
  afterAll(async () => await spawner.stop());

  const output = async (args: string[], more = {}): Promise<string> => {
    const { stdout, stderr, exit, failed } = await spawner.run({ uid, args, ...more });
    expect({ stderr: stderr.toString(), code: exit?.code, failed }).toEqual({ stderr: '', code: 0, failed: undefined });
    return stdout.toString();
  };

  test('the set-up is odd enough to prove something', () => {
    const parent = fields(readFileSync(`/proc/${spawner.pid}/status`, 'utf8'));
    expect(parent['Umask']).toBe('0077');
    expect(BigInt(`0x${parent['SigBlk']}`) & (1n << 14n)).not.toBe(0n);
  });

  test('its own ids and no others, no group, no capability, no way to new ones', async () => {
    const status = fields(await output(['/bin/cat', '/proc/self/status']));
    const four = Array(4).fill(uid).join('\t');
    expect(status).toMatchObject({ Uid: four, Gid: four, Groups: '', NoNewPrivs: '1', Umask: '0077' });
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapAmb']) expect(status[set], set).toMatch(/^0+$/);
  });

  test('standard signals: none ignored, none blocked, none pending', async () => {
    const status = fields(await output(['/bin/cat', '/proc/self/status']));
    for (const set of ['SigIgn', 'SigBlk', 'SigCgt', 'SigPnd', 'ShdPnd']) expect(status[set], set).toMatch(/^0+$/);
  });

  test('descriptors 0, 1 and 2 only, and the first is empty', async () => {
    const listed = await output([
      '/bin/sh',
      '-c',
      'i=0; while [ $i -lt 99 ]; do [ -L /proc/$$/fd/$i ] && echo $i; i=$((i+1)); done; read line; echo "$?$line"',
    ]);
    expect(listed).toBe('0\n1\n2\n1\n');
  });

  test('exactly the environment of the plan', async () => {
    const env = ['PATH=/usr/bin:/bin', 'A=1', 'EMPTY=', '_B2=x=y z'];
    expect(await output(['/bin/cat', '/proc/self/environ'], { env })).toBe(env.map((entry) => `${entry}\0`).join(''));
    expect(await output(['/bin/cat', '/proc/self/environ'], { env: [] })).toBe('');
  });

  test('exactly the arguments of the plan, argv[0] included', async () => {
    const args = ['not the program', '', 'a b', '\u00e9\n', '--'];
    const seen = await output([...args, '/proc/self/cmdline'], { program: '/bin/cat' }).catch(
      (error: unknown) => error,
    );
    expect(seen).toBeInstanceOf(Error); // cat says that '' and the others are no files
    const { stdout } = await spawner.run({
      uid,
      program: '/bin/sh',
      args: ['x', '-c', 'cat /proc/$$/cmdline', '', 'a b'],
    });
    expect(stdout.toString()).toBe('x\0-c\0cat /proc/$$/cmdline\0\0a b\0');
  });

  test('the limits of the plan, soft and hard, and never a core', async () => {
    const limits = await output(['/bin/cat', '/proc/self/limits'], {
      maxProcesses: 77,
      maxFileSize: 123_456,
      maxAddress: 1 << 30,
    });
    expect(limits).toMatch(/^Max processes +77 +77 /m);
    expect(limits).toMatch(/^Max file size +123456 +123456 /m);
    expect(limits).toMatch(/^Max address space +1073741824 +1073741824 /m);
    expect(limits).toMatch(/^Max core file size +0 +0 /m);
  });

  test('limits of 0 are not set', async () => {
    const own = readFileSync('/proc/self/limits', 'utf8');
    const seen = await output(['/bin/cat', '/proc/self/limits'], { maxProcesses: 0 });
    for (const name of ['Max processes', 'Max file size', 'Max address space']) {
      const line = (text: string) => text.split('\n').find((one) => one.startsWith(name));
      expect(line(seen)).toBe(line(own));
    }
  });

  test('its home or the folder beneath, a session of its own, and dies first when memory runs out', async () => {
    expect(await output(['/bin/pwd'])).toBe(`${spawner.spaceOf(uid)}/home\n`);
    await output(['/bin/mkdir', '-p', 'repos/one']);
    expect(await output(['/bin/pwd'], { directory: 'repos/one' })).toBe(`${spawner.spaceOf(uid)}/home/repos/one\n`);
    expect(await output(['/bin/cat', '/proc/self/oom_score_adj'])).toBe('1000\n');
    const stat = (await output(['/bin/cat', '/proc/self/stat'])).split(' ');
    expect([stat[4], stat[5]]).toEqual([stat[0], stat[0]]); // process group and session are its own
    expect(stat[6]).toBe('0'); // no terminal
    expect(stat[18]).toBe('10'); // gives way to the service
  });

  test('it can open its output by name', async () => {
    const { stdout, stderr } = await spawner.shell(uid, 'echo out >/dev/stdout; echo err >/dev/stderr');
    expect([stdout.toString(), stderr.toString()]).toEqual(['out\n', 'err\n']);
  });

  test('a set-uid program gives it nothing', async () => {
    const seen = await output([
      '/bin/sh',
      '-c',
      'ls -ln /usr/bin/su | cut -c4; cp /bin/cat own; chmod 4755 own; ./own /proc/self/status',
    ]);
    expect(seen).toMatch(/^s\n/);
    expect(fields(seen)['Uid']).toBe(Array(4).fill(uid).join('\t'));
    const asRoot = await spawner.shell(uid, 'su -c id </dev/null');
    expect(asRoot.stdout.toString()).toBe('');
  });

  test('the supervisor of a run is its own and nobody else\u2019s', async () => {
    const run = await spawner.start({ uid, args: ['/bin/sh', '-c', 'echo set; sleep 30'] });
    await run.said('set');
    const held = await spawner.start({ uid, args: ['/bin/sh', '-c', 'echo set; sleep 30'] });
    await held.said('set');
    const [first, second] = await eventually('two supervisors', () => {
      const all = spawner.supervisors();
      return all.length === 2 && all;
    });
    const uids = (pid: number | undefined) =>
      fields(readFileSync(`/proc/${pid}/status`, 'utf8'))
        ['Uid']?.split('\t')
        .map(Number);
    for (const pid of [first, second]) {
      const status = fields(readFileSync(`/proc/${pid}/status`, 'utf8'));
      const own = Number(status['NSpid']?.split('\t').at(-1));
      expect(uids(pid)).toEqual([wire('KILLER_UID_FIRST') + own, 0, 0, 0]);
    }
    expect(uids(first)?.[0]).not.toBe(uids(second)?.[0]);
    run.stop();
    held.stop();
    await Promise.all([run.outcome, held.outcome]);
  });
});
