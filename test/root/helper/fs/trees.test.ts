import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { FsHelper } from '../../../support/fs-helper.ts';
import { root } from '../../../support/service.ts';
import { asUser, runToEnd } from '../../worker/support/as-worker.ts';
import { UserSpace } from './support/user-space.ts';

const uid = 937_640;
let user: UserSpace;
let helper: FsHelper;

beforeAll(async () => {
  user = new UserSpace(uid);
  helper = await user.helper();
});
afterEach(async () => {
  expect(await helper.reset()).toStrictEqual({});
  expect(user.tree()).toStrictEqual(user.newTree);
});
afterAll(() => user.remove());

const deep = (count: number, mode: string, folder: string): void =>
  void user.sh(`mkdir ${folder}; cd ${folder}; exec ${root}/dist/test/deep ${count} ${mode}`);
/** Files that the user owns, made without a process for each. */
const many = (folders: number, files: number): void => {
  const script = `for my $d (1..${folders}) { mkdir "d$d"; for (1..${files}) { open my $f, ">", "d$d/$_" or die } }`;
  const { status, stderr } = runToEnd(asUser(uid, uid, ['sh', '-c', `cd "${user.home}" && exec perl -e '${script}'`]));
  if (status !== 0) throw new Error(stderr);
};

describe('delete and reset take away', () => {
  it('trees that are deeper than any path', async () => {
    deep(2_000, '700', 't');
    expect(await helper.delete('t')).toStrictEqual({});
    expect(user.tree()).toStrictEqual(user.newTree);
  });

  it('trees whose every folder is of mode 000', async () => {
    deep(200, '000', 't');
    user.sh('mkdir -p u/v; touch u/v/f; chmod 000 u/v u');
    expect(await helper.delete('t')).toStrictEqual({});
    expect(await helper.delete('u')).toStrictEqual({});
    expect(user.tree()).toStrictEqual(user.newTree);
  });

  it('a home of mode 000 and with everything in it', async () => {
    deep(100, '000', 't');
    user.sh('touch repos/f; chmod 000 repos work ../tmp; chmod 000 "$HOME"');
    expect(await helper.list('')).toBe('file_failed');
    expect(await helper.reset()).toStrictEqual({});
    expect(user.tree()).toStrictEqual(user.newTree);
  });

  it('what else lies in the space, names of any bytes, and links without following them', async () => {
    user.sh(
      'echo keep > "$OUT/keep"; ln -s "$OUT" "$SPACE/l"; mkfifo "$SPACE/p"; mkdir "$SPACE/x"; ln -s / "$SPACE/x/l"',
    );
    user.sh('touch "$SPACE/$(printf "\\377\\n")"; mkdir "$SPACE/$(printf "\\376")"; ln -s "$OUT/keep" tmp');
    expect(await helper.reset()).toStrictEqual({});
    expect(user.tree(user.outside).join()).toContain('keep');
  });

  it('100,000 files', async () => {
    many(400, 250);
    expect(readdirSync(user.home)).toHaveLength(402);
    expect(await helper.reset()).toStrictEqual({});
    expect(user.tree()).toStrictEqual(user.newTree);
  });

  it('10,000 folders in one', async () => {
    const script = `cd "${user.home}" && mkdir t && cd t && exec perl -e 'mkdir $_ for 1..10000'`;
    runToEnd(asUser(uid, uid, ['sh', '-c', script]));
    expect(readdirSync(join(user.home, 't'))).toHaveLength(10_000);
    expect(await helper.delete('t')).toStrictEqual({});
  });
});

describe('what an earlier use left is taken away by the next', () => {
  it.each([
    [
      'a half-emptied trash',
      'mkdir -p "$SPACE/.trash/a/b" "$SPACE/.trash/c"; touch "$SPACE/.trash/a/b/f" "$SPACE/.trash/g"',
    ],
    ['a closed trash', 'mkdir -p "$SPACE/.trash/a"; chmod 000 "$SPACE/.trash/a" "$SPACE/.trash"'],
    ['a file in place of the trash', 'echo x > "$SPACE/.trash"'],
    ['a link in place of the trash', 'mkdir "$OUT/t"; touch "$OUT/t/keep"; ln -s "$OUT/t" "$SPACE/.trash"'],
    ['an unfinished write', 'echo half > "$SPACE/.unfinished"'],
    ['a folder in place of an unfinished write', 'mkdir -p "$SPACE/.unfinished/x"; chmod 000 "$SPACE/.unfinished/x"'],
    [
      'a link in place of an unfinished write',
      'mkdir -p "$OUT/t"; touch "$OUT/t/keep"; ln -s "$OUT/t/keep" "$SPACE/.unfinished"',
    ],
    ['a pipe in place of an unfinished write', 'mkfifo "$SPACE/.unfinished"'],
  ])('%s', async (_name, script) => {
    for (const use of [() => helper.writeFile('f', 'x'), () => helper.delete('repos/none'), () => helper.reset()]) {
      user.sh(`rm -rf "$OUT/t"; ${script}`);
      const before = user.tree(user.outside);
      expect(user.tree()).not.toStrictEqual(user.newTree);
      await use();
      user.sh('rm -f f');
      expect(user.tree()).toStrictEqual(user.newTree);
      expect(user.tree(user.outside)).toStrictEqual(before);
    }
  });

  it('and a reset that could not be finished goes on', async () => {
    // A mount can't be moved or removed: the system's word, whatever the rights.
    user.sh('mkdir -p x/y z; touch z/f');
    execFileSync('mount', ['-t', 'tmpfs', 'none', join(user.home, 'x/y')]);
    try {
      expect(await helper.reset()).toBe('reset_failed');
      expect(await helper.reset()).toBe('reset_failed');
    } finally {
      const mounted = runToEnd(['findmnt', '-rno', 'TARGET', '-t', 'tmpfs']).stdout.split('\n');
      for (const target of mounted.filter((path) => path.startsWith(user.folder))) execFileSync('umount', [target]);
    }
    expect(await helper.reset()).toStrictEqual({});
  });
});

describe('what there is no room for', () => {
  it('a full disk: the old content stays, nothing else does', async () => {
    mkdirSync(join(user.folder, 'small'));
    const small = new UserSpace(uid + 1);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256k,mode=0711', 'none', join(small.folder)]);
    try {
      for (const name of ['', '/home', '/home/repos', '/home/work', '/tmp']) {
        execFileSync('install', [
          '-d',
          '-m',
          '700',
          '-o',
          String(small.uid),
          '-g',
          String(small.uid),
          small.space + name,
        ]);
      }
      const writer = await small.helper();
      expect(await writer.writeFile('f', 'old')).toStrictEqual({ size: 3 });
      const before = small.tree();
      expect(await writer.writeFile('f', 'x'.repeat(400_000))).toBe('write_failed');
      expect(await writer.writeFile('g', 'x'.repeat(400_000))).toBe('write_failed');
      expect(small.tree()).toStrictEqual(before);
      expect(await writer.writeFile('f', 'new')).toStrictEqual({ size: 3 });
      await writer.end();
    } finally {
      execFileSync('umount', ['-l', small.folder]);
      await small.remove();
    }
  });

  it('a file over RLIMIT_FSIZE: refused, and the helper lives on', async () => {
    const limited = await user.helper(['prlimit', '--fsize=1000', '--core=0']);
    expect(await limited.writeFile('f', 'x'.repeat(1_001))).toBe('write_failed');
    expect(await limited.writeFile('f', 'x'.repeat(1_000))).toStrictEqual({ size: 1_000 });
  });

  it('no descriptors left: refused, and the next is served', async () => {
    const limited = await user.helper(['prlimit', '--nofile=23']);
    const answers = [await limited.list(''), await limited.writeFile('f', 'x'), await limited.delete('none')];
    for (const answer of answers)
      expect(['file_failed', 'write_failed', 'not_found']).toContain(typeof answer === 'string' ? answer : 'not_found');
    expect(await helper.writeFile('f', 'x')).toStrictEqual({ size: 1 });
  });
});
