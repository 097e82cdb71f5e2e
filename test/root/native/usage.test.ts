import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { processesOf } from '../../support/processes.ts';
import { native, sanitized } from '../../support/spawner-client.ts';
import { eventually } from '../../support/wait.ts';

const uid = 931_500;
const other = 931_501;

let folder: string;
let space: string;

/** The head of a report, in its order. */
const headNames = ['bytes', 'files', 'dirs', 'links', 'truncated', 'dropped', 'top', 'groups'] as const;

interface Counted {
  readonly status: number | null;
  readonly head: Readonly<Partial<Record<(typeof headNames)[number], number>>>;
  /** All records after the head, bytes as Latin-1 characters. */
  readonly items: readonly string[];
}

interface Bounds {
  readonly entries?: number;
  readonly listed?: number;
  readonly ms?: number;
  readonly program?: string;
  /** Put before the program. */
  readonly wrapper?: readonly string[];
}

const asUser = (user: number): string[] => [
  `--reuid=${user}`,
  `--regid=${user}`,
  '--clear-groups',
  '--inh-caps=-all',
  '--no-new-privs',
];

const command = ({ entries = 500_000, listed = 1_000, ms = 20_000, program = native, wrapper = [] }: Bounds) => [
  ...wrapper,
  'setpriv',
  ...asUser(uid),
  program,
  'usage',
  ...[entries, listed, ms].map(String),
];

const environment = () => ({ PATH: '/usr/bin:/bin', SPACE: space, ASAN_OPTIONS: 'detect_leaks=0' });

const read = (status: number | null, output: Buffer): Counted => {
  if (output.length === 0) return { status, head: {}, items: [] };
  const [head = '', ...items] = output.toString('latin1').slice(0, -1).split('\0');
  const numbers = head.split(' ').slice(2).map(Number);
  return { status, head: Object.fromEntries(headNames.map((name, at) => [name, numbers[at] ?? -1])), items };
};

const count = (bounds: Bounds = {}): Counted => {
  const [program = '', ...args] = command(bounds);
  const { status, stdout, stderr } = spawnSync(program, args, { env: environment(), cwd: '/', timeout: 50_000 });
  expect(stderr.toString()).toBe('');
  return read(status, stdout);
};

/** Does something in the space as its user, or another; fails if that fails. */
const sh = (script: string, user = uid): void => {
  const args = [...(user === 0 ? [] : asUser(user)), 'sh', '-ec', script];
  const { status, stderr } = spawnSync('setpriv', args, { cwd: user === other ? '/' : space, encoding: 'utf8' });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
};

const modeOf = (path: string): number => lstatSync(join(space, path)).mode & 0o7777;

beforeEach(() => {
  folder = mkdtempSync('/tmp/usage-test-');
  chmodSync(folder, 0o711);
  space = join(folder, `u${uid}`);
  mkdirSync(space, { mode: 0o700 });
  sh(`chown ${uid}:${uid} .`, 0);
  sh('umask 077; mkdir -p tmp home/repos home/work');
});

afterEach(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));

describe('a count', () => {
  it('of the seed’s example is exact', () => {
    sh('printf 0123456789 >home/a; printf abc >home/b; printf xy >tmp/c; ln -s a home/link');
    expect(count()).toEqual({
      status: 0,
      head: { bytes: 15, files: 3, dirs: 4, links: 1, truncated: 0, dropped: 0, top: 2, groups: 0 },
      items: ['13 2 home', '2 1 tmp'],
    });
  });

  it('of a new space is nothing but its folders', () => {
    expect(count()).toMatchObject({
      status: 0,
      head: { bytes: 0, files: 0, dirs: 4, links: 0 },
      items: ['0 0 home', '0 0 tmp'],
    });
  });

  it('includes what is neither in home nor in tmp', () => {
    sh('printf 12345 >aside; mkdir hidden; printf 123 >hidden/x; ln -s / link; mkfifo pipe');
    const { head, items } = count();
    expect(head).toMatchObject({ bytes: 8, files: 2, dirs: 5, links: 1, top: 6 });
    expect(items).toEqual(['5 1 aside', '3 1 hidden', '0 0 home', '0 0 link', '0 0 pipe', '0 0 tmp']);
  });

  it('never follows a link', () => {
    sh('ln -s /usr home/repos/a; ln -s / home/work/b; ln -s /etc/passwd tmp/c; ln -s ../tmp home/d; ln -s gone home/e');
    expect(count()).toMatchObject({ status: 0, head: { bytes: 0, files: 0, dirs: 4, links: 5, groups: 0 } });
    sh('rm -r home/repos; ln -s /usr home/repos');
    expect(count()).toMatchObject({ status: 0, head: { bytes: 0, files: 0, dirs: 3, links: 5, groups: 0 } });
  });

  it('takes apparent sizes: a hole counts, and a file counts once for each name', () => {
    sh('truncate -s 5G home/sparse; printf 1234567 >home/one; ln home/one home/two; ln home/one tmp/three');
    expect(lstatSync(join(space, 'home/one')).nlink).toBe(3);
    expect(lstatSync(join(space, 'home/sparse')).blocks).toBe(0);
    expect(count().head).toMatchObject({ bytes: 5 * 1024 ** 3 + 21, files: 4 });
  });

  it('stays at what a number can hold', () => {
    sh('for n in $(seq 520); do truncate -s 17592186040320 home/$n; done');
    expect(520n * 17_592_186_040_320n).toBeGreaterThan(BigInt(Number.MAX_SAFE_INTEGER));
    const { head, items } = count();
    expect(head).toMatchObject({ bytes: Number.MAX_SAFE_INTEGER, files: 520 });
    expect(items[0]).toBe(`${Number.MAX_SAFE_INTEGER} 520 home`);
  });

  it('takes pipes, sockets and the like for entries that hold nothing', () => {
    sh('mkfifo home/pipe');
    sh('mknod home/null c 1 3; mknod home/disk b 7 200', 0);
    expect(count()).toMatchObject({ status: 0, head: { bytes: 0, files: 0, dirs: 4, links: 0 } });
    expect(count({ entries: 7 }).head.truncated).toBe(0);
    expect(count({ entries: 6 }).head.truncated).toBe(1);
  });

  it('gives the same with the sanitizers on', () => {
    sh(
      'cp -r /usr/include home/repos/include; mkdir -p home/work/c/p; printf 1 >home/work/c/p/f; mkdir -m 0 home/closed',
    );
    expect(count({ program: sanitized })).toEqual(count());
  });
});

describe('groups', () => {
  it('are the folders home/repos/* and home/work/*/*, largest first, with all that is beneath them', () => {
    sh(`mkdir -p home/repos/a/deep/er home/repos/b home/work/c1/a/x home/work/c1/b home/work/c2/a tmp/repos/no home/other/repos/no
      printf 12345 >home/repos/a/deep/er/f; printf 1 >home/repos/a/g; printf 123 >home/work/c1/a/x/f; printf 1234 >home/work/c2/a/f
      printf 99 >home/repos/file; printf 99 >home/work/file; printf 99 >home/work/c1/file; ln -s a home/repos/link; ln -s a home/work/c1/link`);
    const { head, items } = count();
    expect(head).toMatchObject({ bytes: 19, files: 7, links: 2, groups: 5, dropped: 0 });
    expect(items.slice(head.top)).toEqual([
      '6 2 home/repos/a',
      '4 1 home/work/c2/a',
      '3 1 home/work/c1/a',
      '0 0 home/repos/b',
      '0 0 home/work/c1/b',
    ]);
  });

  it('are the largest when there are too many, and the totals stay exact', () => {
    sh('for n in $(seq 9); do mkdir home/repos/$n; head -c $n /dev/zero >home/repos/$n/f; done');
    const { head, items } = count({ listed: 3 });
    expect(head).toMatchObject({ bytes: 45, files: 9, dropped: 1, groups: 3 });
    expect(items.slice(head.top)).toEqual(['9 1 home/repos/9', '8 1 home/repos/8', '7 1 home/repos/7']);
    expect(count({ listed: 9 }).head).toMatchObject({ dropped: 0, groups: 9 });
  });

  it('have names of any bytes, which end at their NUL', () => {
    const names = ['a b', 'new\nline', 'usage 1 0 0', '\xff\xfe', '-n', '\u00e4'.repeat(100), 'x'.repeat(255)];
    for (const name of names) mkdirSync(Buffer.from(join(space, 'home/repos', name), 'latin1'));
    sh(`chown -R ${uid}:${uid} home`, 0);
    const { head, items } = count();
    expect(head).toMatchObject({ groups: names.length });
    expect(items.slice(head.top).sort()).toEqual(names.map((name) => `0 0 home/repos/${name}`).sort());
  });
});

describe('what is hidden', () => {
  it.each(['000', '100', '200', '300', '400', '500', '600'])(
    'in folders of mode %s counts, and their mode is put back',
    (mode) => {
      sh(
        `mkdir -p home/a/b/c; printf 12345 >home/a/f; printf 123 >home/a/b/c/f; chmod ${mode} home/a/b/c home/a/b home/a`,
      );
      expect(count()).toMatchObject({ status: 0, head: { bytes: 8, files: 2, dirs: 7 } });
      for (const path of ['home/a', 'home/a/b', 'home/a/b/c']) expect(modeOf(path)).toBe(Number.parseInt(mode, 8));
    },
  );

  it('in a home of mode 000 counts', () => {
    sh('printf 12 >home/f; chmod 0 home tmp');
    expect(count()).toMatchObject({ status: 0, head: { bytes: 2, files: 1 } });
    expect([modeOf('home'), modeOf('tmp')]).toEqual([0, 0]);
  });

  it('in a file of mode 000 counts', () => {
    sh('printf 12 >home/f; chmod 0 home/f');
    expect(count().head).toMatchObject({ bytes: 2, files: 1 });
    expect(modeOf('home/f')).toBe(0);
  });

  it('is put back when the entries run out, too', () => {
    sh('mkdir -p home/a/b; touch home/a/b/1 home/a/b/2 home/a/b/3; chmod 0 home/a/b home/a');
    expect(count({ entries: 7 }).head).toMatchObject({ truncated: 1 });
    expect([modeOf('home/a'), modeOf('home/a/b')]).toEqual([0, 0]);
  });

  it('by another user’s folder can’t be counted: no report at all', () => {
    sh(
      `mkdir -p home/theirs/in; touch home/theirs/in/f; chown -R ${other}:${other} home/theirs; chmod 0700 home/theirs`,
      0,
    );
    expect(count()).toEqual({ status: 2, head: {}, items: [] });
    // Open to all, but what is in it is not: names can be read, what they name can't be looked at.
    sh('chmod 0744 home/theirs', 0);
    expect(count()).toEqual({ status: 2, head: {}, items: [] });
    sh('chmod 0755 home/theirs home/theirs/in', 0);
    expect(count()).toMatchObject({ status: 0, head: { files: 1 } });
    // Only a file is in it, so that nothing has to be opened.
    sh('rm -r home/theirs/in; printf 12345 >home/theirs/f; chmod 0744 home/theirs', 0);
    expect(count()).toEqual({ status: 2, head: {}, items: [] });
  });

  it('leaves the modes of others alone, and puts own ones back when it fails', () => {
    sh('mkdir -p home/mine/theirs; chmod 0 home/mine');
    sh(`chown ${other}:${other} home/mine/theirs; chmod 0 home/mine/theirs`, 0);
    expect(count().status).toBe(2);
    expect([modeOf('home/mine'), modeOf('home/mine/theirs')]).toEqual([0, 0]);
  });
});

describe('bounds', () => {
  it('of entries: as many are counted, and one more makes it truncated', () => {
    sh('for n in $(seq 20); do mkdir home/repos/$n; printf 1 >home/repos/$n/f; done');
    const all = 4 + 40;
    expect(count({ entries: all }).head).toMatchObject({ truncated: 0, files: 20, dirs: 24 });
    const { status, head } = count({ entries: all - 1 });
    expect({ status, head }).toMatchObject({ status: 0, head: { truncated: 1 } });
    expect((head.files ?? 0) + (head.dirs ?? 0)).toBe(all - 1);
    expect(count({ entries: 1 }).head).toMatchObject({ truncated: 1, files: 0, dirs: 1 });
  });

  it('of depth: what is beyond it is not left out in silence', () => {
    const chain = (levels: number): string =>
      `mkdir -p home/${'d/'.repeat(levels)} && printf 1 >home/${'d/'.repeat(levels)}f`;
    sh(chain(500));
    expect(count()).toMatchObject({ status: 0, head: { files: 1, dirs: 504 } });
    sh('rm -r home/d');
    sh(chain(520));
    expect(count()).toEqual({ status: 3, head: {}, items: [] });
  });

  it('of time: what is not done by then is nothing', () => {
    // One folder and nothing after it: the time must run out while it is being read.
    sh('rm -r tmp home/repos home/work; mkdir home/m; cd home/m; seq 60000 | xargs touch');
    expect(count()).toMatchObject({ status: 0, head: { files: 60_000 } });
    expect(count({ ms: 10 })).toEqual({ status: 4, head: {}, items: [] });
  });

  it('of descriptors: running out of them is a failure', () => {
    sh('mkdir -p home/a/b/c/d/e/f/g/h/i/j');
    const wrapper = ['prlimit', '--nofile=10:10'];
    expect(count({ wrapper })).toEqual({ status: 2, head: {}, items: [] });
    expect(count().status).toBe(0);
  });

  it('hold while somebody makes files, folders and folders in folders all the time', async () => {
    const script = 'n=0; while :; do n=$((n+1)); mkdir -p home/m/$n/a/b; : >home/m/$n/f; : >home/m/$n/a/b/g; done';
    const maker = spawn('setpriv', [...asUser(uid), 'sh', '-c', script], {
      cwd: space,
      stdio: 'ignore',
      detached: true,
    });
    try {
      await eventually(
        'some folders',
        () => readdirSync(join(space, 'home')).includes('m') && readdirSync(join(space, 'home/m')).length > 20,
      );
      for (const entries of [100, 500_000]) {
        const began = performance.now();
        const { status, head } = count({ entries, ms: 10_000 });
        expect(performance.now() - began).toBeLessThan(15_000);
        expect(status).toBe(0);
        expect((head.files ?? 0) + (head.dirs ?? 0)).toBeLessThanOrEqual(entries);
      }
      expect(maker.exitCode).toBeNull();
    } finally {
      // With what it has just started: that would go on making folders while they are removed.
      process.kill(-(maker.pid ?? Number.NaN), 'SIGKILL');
      const gone = () => maker.signalCode !== null && processesOf(uid).every(({ state }) => state === 'Z');
      await eventually('the maker is gone', gone);
    }
  });

  it.each([
    [['0', '1', '1']],
    [['1', '0', '1']],
    [['1', '1', '0']],
    [['-1', '1', '1']],
    [['01', '1', '1']],
    [['1x', '1', '1']],
    [['99999999', '1', '1']],
    [['1', '1', '99999999999999999999']],
  ])('that are none are refused: %j', (numbers) => {
    const { status, stdout } = spawnSync(native, ['usage', ...numbers], { env: environment() });
    expect([status, stdout.length]).toEqual([64, 0]);
  });

  it('a space that isn’t named, isn’t there, or is a link: nothing', () => {
    sh(`ln -s ${space} ../link`, 0);
    for (const [place, expected] of [
      ['', 64],
      ['relative', 64],
      ['/nonexistent', 2],
      [join(folder, 'link'), 2],
    ] as const) {
      const { status, stdout } = spawnSync(native, ['usage', '9', '9', '999'], { env: { SPACE: place } });
      expect([status, stdout.length]).toEqual([expected, 0]);
    }
  });
});

/** Each folder is read with two calls, the second of which says that it was the end. */
const afterReading = (folders: number): string => `--inject=getdents64:delay_exit=2500000:when=${2 * folders}`;

/** A count that stands still for a while when it has read so many folders. */
const slowed = (folders: number) => {
  const [program = '', ...args] = command({ wrapper: ['strace', '-qq', '-o', '/dev/null', afterReading(folders)] });
  const tracer = spawn(program, args, { env: environment(), cwd: '/', stdio: ['ignore', 'pipe', 'inherit'] });
  const chunks: Buffer[] = [];
  tracer.stdout?.on('data', (chunk: Buffer) => chunks.push(chunk));
  const outcome = new Promise<Counted>((resolve) => {
    tracer.once('close', (status) => resolve(read(status, Buffer.concat(chunks))));
  });
  const pid = (): number => Number(readFileSync(`/proc/${tracer.pid}/task/${tracer.pid}/children`, 'utf8').trim());
  /** Waits until it has read this folder. */
  const isIn = (path: string) => eventually(`the count is in ${path}`, () => hasRead(pid(), join(space, path)));
  return { outcome, pid, isIn };
};

/** Whether a process has a folder open and has read of it. It may be gone: strace tries itself out on children first. */
const hasRead = (pid: number, path: string): boolean => {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => {
      const position = () => /^pos:\t(\d+)$/m.exec(readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'latin1'))?.[1];
      return readlinkSync(`/proc/${pid}/fd/${fd}`) === path && position() !== '0';
    });
  } catch {
    return false; // it, or what it had open, has just gone
  }
};

describe('the user’s other processes', () => {
  beforeEach(() => sh('rm -r tmp home/repos home/work'));

  it('can’t have it follow a link that they put in place of a folder meanwhile', async () => {
    sh('mkdir home/swapped');
    const { outcome, isIn } = slowed(2);
    await isIn('home');
    sh('rmdir home/swapped; ln -s /usr/include home/swapped');
    expect(await outcome).toMatchObject({ status: 0, head: { bytes: 0, files: 0, dirs: 2, links: 0 } });
    expect(count()).toMatchObject({ status: 0, head: { files: 0, dirs: 1, links: 1 } });
  });

  it('can’t have it fail by removing what it is about to enter', async () => {
    sh('mkdir home/removed');
    const { outcome, isIn } = slowed(2);
    await isIn('home');
    sh('rmdir home/removed');
    expect(await outcome).toMatchObject({ status: 0, head: { files: 0 } });
  });

  it('keep the mode that they give a folder while it is counted', async () => {
    sh('mkdir -m 0 home/closed');
    const { outcome, isIn } = slowed(3);
    await isIn('home/closed');
    await eventually('it has opened the folder up', () => modeOf('home/closed') === 0o500);
    sh('chmod 0750 home/closed');
    expect((await outcome).status).toBe(0);
    expect(modeOf('home/closed')).toBe(0o750);
  });

  it('can’t look into it, nor reach its output', async () => {
    const { outcome, pid, isIn } = slowed(2);
    await isIn('home');
    const look = (path: string) => {
      const args = [...asUser(uid), 'ls', path];
      return spawnSync('setpriv', args, { encoding: 'utf8' }).stderr;
    };
    expect(look(`/proc/${pid()}/status`)).toBe('');
    for (const name of ['fd/', 'fd/1', 'cwd/', 'root/']) expect(look(`/proc/${pid()}/${name}`)).toMatch(/denied/);
    expect((await outcome).status).toBe(0);
  });
});
