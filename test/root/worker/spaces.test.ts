import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { asUser, type Ended, killedAt, ownFolder, runToEnd, Script, workerCommand } from './support/as-worker.ts';

const user = 917_300;
const uid = 937_300;
const other = 917_301;

let folder: ReturnType<typeof ownFolder>;
let workDir: string;

beforeEach(() => {
  folder = ownFolder();
  workDir = join(folder.path, 'work');
  mkdirSync(workDir);
  chmodSync(workDir, 0o711);
});

afterEach(() => folder.remove());

/** The script's answers; it must have come to its end. */
const answers = ({ status, stdout, stderr }: Ended): unknown => {
  expect({ status, stderr }).toStrictEqual({ status: 0, stderr: '' });
  return JSON.parse(stdout);
};

const ensure = (...users: readonly number[]): unknown =>
  answers(runToEnd(workerCommand('spaces-script', ['ensure', workDir, ...users.map(String)])));

/** A worker's start, and then the first use by these users. */
const start = (...users: readonly number[]): unknown =>
  answers(runToEnd(workerCommand('spaces-script', ['start', workDir, ...users.map(String)])));

const pathOf = (number: number): string => join(workDir, `u${20_000 + number}`);

/** Everything beneath a folder: type and mode, owner, group. Enough to see any change that matters. */
const tree = (root: string, prefix = ''): string[] =>
  readdirSync(root, { withFileTypes: true })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(root, entry.name);
      const { mode, uid: owner, gid } = lstatSync(path);
      const line = `${prefix}${entry.name} ${mode.toString(8)} ${owner}:${gid}`;
      return [line, ...(entry.isDirectory() ? tree(path, `${prefix}${entry.name}/`) : [])];
    });

const spaceTree = (number: number): string[] => {
  const id = 20_000 + number;
  return ['', '/home', '/home/repos', '/home/work', '/tmp'].map((name) => `u${id}${name} 40700 ${id}:${id}`);
};

const leftovers = (): string[] => readdirSync(workDir).filter((name) => name.startsWith('.new-'));

describe('a space', () => {
  it('is made on first use: four folders and itself, each 0700 and the user’s', () => {
    expect(ensure(user)).toStrictEqual([{ value: pathOf(user) }]);
    expect(tree(workDir)).toStrictEqual(spaceTree(user));
  });

  it('is left as it is on every later use', () => {
    ensure(user);
    const { ino } = lstatSync(pathOf(user));
    runToEnd(asUser(uid, uid, ['sh', '-c', `echo kept > ${pathOf(user)}/home/file`]));
    const before = tree(workDir);
    expect(before).toContain(`u${uid}/home/file 100644 ${uid}:${uid}`);
    expect(ensure(user)).toStrictEqual([{ value: pathOf(user) }]);
    expect(tree(workDir)).toStrictEqual(before);
    expect(lstatSync(pathOf(user)).ino).toBe(ino);
  });

  it('does not depend on the user’s home being whole', () => {
    ensure(user);
    expect(runToEnd(asUser(uid, uid, ['rm', '-rf', `${pathOf(user)}/home`])).status).toBe(0);
    expect(ensure(user)).toStrictEqual([{ value: pathOf(user) }]);
    expect(readdirSync(pathOf(user))).toStrictEqual(['tmp']);
  });

  it('is made for several users by one worker', () => {
    expect(ensure(user, other, user)).toStrictEqual([
      { value: pathOf(user) },
      { value: pathOf(other) },
      { value: pathOf(user) },
    ]);
    expect(tree(workDir)).toStrictEqual([...spaceTree(user), ...spaceTree(other)]);
  });

  it('is made whole for each of two users at once', async () => {
    const scripts = [user, other].map((one) => {
      const [program = '', ...args] = workerCommand('spaces-script', ['ensure', workDir, String(one)]);
      return new Script(['sh', '-c', 'exec "$@" >/dev/null', 'sh', program, ...args]);
    });
    expect(await Promise.all(scripts.map(({ exited }) => exited))).toStrictEqual([0, 0]);
    expect(tree(workDir)).toStrictEqual([...spaceTree(user), ...spaceTree(other)]);
  });

  it('can be used by its user and reached by no other', () => {
    ensure(user, other);
    const sh = (id: number, command: string): Ended => runToEnd(asUser(id, id, ['sh', '-c', command]));
    const secret = join(pathOf(user), 'home', 'secret');
    expect(sh(uid, `echo planted > ${secret} && chmod 0666 ${secret} && cat ${secret}`)).toMatchObject({
      status: 0,
      stdout: 'planted\n',
    });
    const id = 20_000 + other;
    for (const command of [
      `cat ${secret}`,
      `ls ${pathOf(user)}`,
      `ls ${pathOf(user)}/home`,
      `cd ${pathOf(user)}`,
      `echo x > ${secret}`,
      `touch ${pathOf(user)}/tmp/x`,
      `chmod 0777 ${pathOf(user)}`,
      `mv ${pathOf(user)} ${pathOf(user)}.moved`,
      `ls ${workDir}`,
      `mkdir ${workDir}/u99`,
      `ln -s / ${workDir}/u99`,
    ]) {
      const { status, stdout, stderr } = sh(id, command);
      expect({ command, failed: status !== 0, stdout }).toStrictEqual({ command, failed: true, stdout: '' });
      expect(stderr).toMatch(/denied|permitted|cannot|can't/i);
    }
    expect(readFileSync(secret, 'utf8')).toBe('planted\n');
    expect(sh(id, `ls ${pathOf(other)}`)).toMatchObject({ status: 0, stdout: 'home\ntmp\n' });
  });
});

describe('a space that is not as it was made', () => {
  type Make = (path: string, owner: number) => void;
  const stranger = 20_000 + other;
  const right: Make = (path, owner) => {
    mkdirSync(path, { mode: 0o700 });
    chownSync(path, owner, owner);
  };
  const withMode =
    (mode: number): Make =>
    (path, owner) => {
      right(path, owner);
      chmodSync(path, mode);
    };
  const withOwner =
    (of: (owner: number) => readonly [number, number]): Make =>
    (path, owner) => {
      mkdirSync(path, { mode: 0o700 });
      chownSync(path, ...of(owner));
    };

  const broken: readonly (readonly [string, Make])[] = [
    [
      'a file',
      (path, owner) => {
        writeFileSync(path, 'x', { mode: 0o700 });
        chownSync(path, owner, owner);
      },
    ],
    [
      'a link to a folder that would be right',
      (path, owner) => {
        right(`${path}-elsewhere`, owner);
        symlinkSync(`${path}-elsewhere`, path);
      },
    ],
    ['a link to nothing', (path) => symlinkSync('/nonexistent', path)],
    ['a pipe', (path) => void runToEnd(['mkfifo', '-m', '0700', path])],
    ['a folder 0755', withMode(0o755)],
    ['a folder 0701', withMode(0o701)],
    ['a folder 0710', withMode(0o710)],
    ['a folder 0600', withMode(0o600)],
    ['a folder 0000', withMode(0)],
    ['a folder 1700', withMode(0o1700)],
    ['a folder 2700', withMode(0o2700)],
    ['a folder 4700', withMode(0o4700)],
    ['a folder of root’s', withOwner(() => [0, 0])],
    ['a folder of another user’s', withOwner(() => [stranger, stranger])],
    ['a folder of another owner', withOwner((owner) => [stranger, owner])],
    ['a folder of another group', withOwner((owner) => [owner, stranger])],
    ['a folder of root’s group', withOwner((owner) => [owner, 0])],
  ];
  const cases = broken.map(([name, make], index) => ({ name, make, number: 917_310 + index }));

  const look = (path: string) => {
    const stats = lstatSync(path);
    const { mode, uid: owner, gid, ino, size, mtimeMs, ctimeMs } = stats;
    const target = stats.isSymbolicLink() ? readlinkSync(path) : '';
    return { mode, owner, gid, ino, size, mtimeMs, ctimeMs, target };
  };

  // One worker is asked for all of them, each twice.
  const shared = ownFolder();
  const place = (number: number): string => join(shared.path, `u${20_000 + number}`);
  const before = new Map<number, ReturnType<typeof look>>();
  let treeBefore: string[] = [];
  let said: unknown[] = [];

  beforeAll(() => {
    for (const { make, number } of cases) {
      make(place(number), 20_000 + number);
      before.set(number, look(place(number)));
    }
    treeBefore = tree(shared.path);
    const users = [...cases, ...cases].map(({ number }) => String(number));
    said = answers(runToEnd(workerCommand('spaces-script', ['ensure', shared.path, ...users]))) as unknown[];
  });

  afterAll(() => shared.remove());

  it.each(cases)('$name: workspace_broken, and nothing is repaired or touched', ({ number }) => {
    const refused = { name: 'Refusal', code: 'workspace_broken', message: expect.any(String) };
    const index = number - 917_310;
    expect([said[index], said[index + cases.length]]).toStrictEqual([refused, refused]);
    expect(look(place(number))).toStrictEqual(before.get(number));
  });

  it('nothing else appeared or changed either', () => {
    expect(treeBefore.length).toBeGreaterThan(cases.length);
    expect(tree(shared.path)).toStrictEqual(treeBefore);
  });

  it('the folder that the cases are made from would be right', () => {
    right(pathOf(user), uid);
    expect(ensure(user)).toStrictEqual([{ value: pathOf(user) }]);
  });
});

/** Every call that making a space makes, in order. */
const makingSteps: readonly (readonly [string, number])[] = [
  ...[1, 2, 3, 4, 5].map((when) => ['mkdir', when] as const),
  ...[1, 2, 3, 4, 5].map((when) => ['chown', when] as const),
  ['rename', 1],
];

describe('a worker that dies while it makes a space', () => {
  it('makes one with exactly these calls', () => {
    const trace = join(folder.path, 'trace');
    const command = workerCommand('spaces-script', ['ensure', workDir, String(user)]);
    const calls =
      'trace=mkdir,mkdirat,chown,fchown,lchown,fchownat,chmod,fchmod,fchmodat,rename,renameat,renameat2,link,symlink';
    answers(runToEnd(['strace', '-f', '-qq', '-o', trace, '-e', calls, ...command]));
    const made = readFileSync(trace, 'utf8')
      .split('\n')
      .filter((line) => line.includes(workDir))
      .map((line) => /(\w+)\(/.exec(line)?.[1]);
    expect(made).toStrictEqual(makingSteps.map(([call]) => call));
  });

  it.each(makingSteps)(
    'at %s number %i leaves nothing that looks like a space, and the next start mends it',
    (call, when) => {
      const { signal } = killedAt(call, when, workerCommand('spaces-script', ['ensure', workDir, String(user)]));
      expect(signal, 'it was killed').toBe('SIGKILL');
      const isFirst = call === 'mkdir' && when === 1;
      expect(leftovers()).toHaveLength(isFirst ? 0 : 1);
      expect(readdirSync(workDir)).toStrictEqual(leftovers());
      expect(start()).toStrictEqual([{ value: 0 }]);
      expect(readdirSync(workDir)).toStrictEqual([]);
      expect(ensure(user)).toStrictEqual([{ value: pathOf(user) }]);
      expect(tree(workDir)).toStrictEqual(spaceTree(user));
    },
  );

  it('after the last call leaves a whole space', () => {
    const { signal } = killedAt('exit_group', 1, workerCommand('spaces-script', ['ensure', workDir, String(user)]));
    expect(signal, 'it was killed').toBe('SIGKILL');
    expect(tree(workDir)).toStrictEqual(spaceTree(user));
  });
});

describe('left-overs of a dead worker', () => {
  const left = (): string => join(workDir, `.new-u${uid}-0123456789abcdef`);
  /** As a worker leaves it that dies before the rename, when it had given `given` of the five folders away. */
  const leave = (given = 5): void => {
    const folders = ['', 'tmp', 'home', 'home/repos', 'home/work'].map((name) => join(left(), name));
    for (const path of folders) mkdirSync(path, { mode: 0o700 });
    for (const path of folders.toReversed().slice(0, given)) chownSync(path, uid, uid);
    expect(tree(workDir)).toHaveLength(5);
  };

  const removing: readonly (readonly [string, number])[] = [
    ...[1, 2, 3, 4, 5].map((when) => ['chown', when] as const),
    ...[1, 2, 3, 4, 5].map((when) => ['rmdir', when] as const),
  ];
  it.each(removing)('whose removal dies at %s number %i are removed by the next one', (call, when) => {
    leave();
    const { signal } = killedAt(call, when, workerCommand('spaces-script', ['start', workDir]));
    expect(signal, 'it was killed').toBe('SIGKILL');
    expect(leftovers()).toHaveLength(1);
    expect(start()).toStrictEqual([{ value: 0 }]);
    expect(readdirSync(workDir)).toStrictEqual([]);
  });

  it('do not keep the same user from getting a space meanwhile', () => {
    leave(3);
    expect(ensure(user)).toStrictEqual([{ value: pathOf(user) }]);
    expect(start()).toStrictEqual([{ value: 0 }]);
    expect(tree(workDir)).toStrictEqual(spaceTree(user));
  });

  it('that hold something of a person’s stay, and are counted', () => {
    leave(0);
    writeFileSync(join(left(), 'home', 'file'), 'x');
    expect(start()).toStrictEqual([{ value: 1 }]);
    expect(readFileSync(join(left(), 'home', 'file'), 'utf8')).toBe('x');
  });

  it('do not lead out of the work dir by a link in their place', () => {
    const outside = join(folder.path, 'outside');
    mkdirSync(join(outside, 'home', 'repos'), { recursive: true });
    for (const path of [outside, join(outside, 'home'), join(outside, 'home', 'repos')]) chownSync(path, 1234, 1234);
    symlinkSync(outside, left());
    const before = tree(outside);
    expect(start()).toStrictEqual([{ value: 1 }]);
    expect(tree(outside)).toStrictEqual(before);
  });

  it('are the only thing that is removed', () => {
    ensure(user);
    mkdirSync(join(workDir, 'new-thing'));
    mkdirSync(join(workDir, '.runner'));
    const before = tree(workDir);
    expect(start()).toStrictEqual([{ value: 0 }]);
    expect(tree(workDir)).toStrictEqual(before);
  });
});

describe('the folders of the worker', () => {
  const prepare = (work: string, state: string): unknown =>
    answers(runToEnd(workerCommand('spaces-script', ['prepare', work, state])));
  const view = (path: string): string => {
    const { mode, uid: owner, gid } = lstatSync(path);
    return `${mode.toString(8)} ${owner}:${gid}`;
  };

  it('are made: the work dir to pass through, the state dir for root alone', () => {
    const work = join(folder.path, 'a', 'b');
    const state = join(work, '.runner');
    expect(prepare(work, state)).toStrictEqual([{}]);
    expect([view(work), view(state)]).toStrictEqual(['40711 0:0', '40700 0:0']);
    expect(prepare(work, state), 'again').toStrictEqual([{}]);
    expect([view(work), view(state)]).toStrictEqual(['40711 0:0', '40700 0:0']);
  });

  it('are tightened when they are root’s', () => {
    const work = join(folder.path, 'a');
    const state = join(folder.path, 's');
    for (const path of [work, state]) {
      mkdirSync(path);
      chmodSync(path, 0o777);
      chownSync(path, 0, 4321);
    }
    expect(prepare(work, state)).toStrictEqual([{}]);
    expect([view(work), view(state)]).toStrictEqual(['40711 0:0', '40700 0:0']);
  });

  const wrong: readonly (readonly [string, (path: string) => void])[] = [
    [
      'another’s',
      (path) => {
        mkdirSync(path);
        chownSync(path, 1234, 1234);
      },
    ],
    [
      'a link to a folder of root’s',
      (path) => {
        mkdirSync(`${path}-elsewhere`);
        symlinkSync(`${path}-elsewhere`, path);
      },
    ],
    ['a file', (path) => writeFileSync(path, 'x')],
    ['a link to nothing', (path) => symlinkSync('/nonexistent/x', path)],
  ];
  it.each(wrong)('stop the start when they are %s, and are left alone', (_name, make) => {
    for (const [index, variable] of ['RUNNER_WORK_DIR', 'RUNNER_STATE_DIR'].entries()) {
      const bad = join(folder.path, `bad-${index}`);
      make(bad);
      const before = view(bad);
      const good = join(folder.path, `good-${index}`);
      const refusal = { name: 'SettingsError', message: expect.stringContaining(variable) };
      expect(index === 0 ? prepare(bad, good) : prepare(good, bad), variable).toStrictEqual([refusal]);
      expect(view(bad)).toBe(before);
    }
  });
});
