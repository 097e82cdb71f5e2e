import { lstatSync, readFileSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { FsHelper } from '../../../support/fs-helper.ts';
import { UserSpace } from './support/user-space.ts';

const uid = 937_610;
let user: UserSpace;
let helper: FsHelper;

beforeAll(async () => {
  user = new UserSpace(uid);
  helper = await user.helper();
});
afterEach(async () => {
  user.stop();
  expect(await helper.reset()).toStrictEqual({});
  expect(user.tree()).toStrictEqual(user.newTree);
});
afterAll(() => user.remove());

interface Listing {
  readonly entries: readonly { readonly name: string; readonly kind: string; readonly size: number }[];
  readonly truncated: boolean;
}
const listing = async (path: string, most?: number): Promise<Listing> => {
  const answer = await helper.list(path, most);
  if (typeof answer !== 'object') throw new Error(String(answer));
  return answer as Listing;
};
const names = ({ entries }: Listing): string[] => entries.map(({ name }) => name);

/** One of each kind. */
const kinds = async (): Promise<void> => {
  user.sh('mkdir d; echo text > f; ln -s f l; mkfifo p; mkdir d/e');
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(`${user.home}/s`, resolve));
  // Unreferenced and not closed: closing would remove the socket's name.
  server.unref();
  expect(lstatSync(`${user.home}/s`).isSocket()).toBe(true);
};

describe('list', () => {
  it('folders first, then by name, each with kind, size and time; a link’s target never', async () => {
    await kinds();
    user.sh('mkdir Z; echo a > A; touch -d 2020-01-02T03:04:05.678Z A; printf 12345 > ü');
    const { entries, truncated } = await listing('');
    expect(truncated).toBe(false);
    expect(entries.map(({ name, kind }) => `${kind} ${name}`)).toStrictEqual([
      'dir Z',
      'dir d',
      'dir repos',
      'dir work',
      'file A',
      'file f',
      'symlink l',
      'other p',
      'other s',
      'file ü',
    ]);
    expect(entries[4]).toStrictEqual({ name: 'A', kind: 'file', size: 2, modified: '2020-01-02T03:04:05.678Z' });
    expect(entries[9]?.size).toBe(5);
    expect(JSON.stringify(entries)).not.toContain('target');
  });

  it('tells the kinds that it is not for', async () => {
    await kinds();
    expect(await helper.list('f')).toBe('bad_target');
    expect(await helper.list('p')).toBe('bad_target');
    expect(await helper.list('s')).toBe('bad_target');
    expect(await helper.list('l')).toBe('symlink');
    expect(await helper.list('none')).toBe('not_found');
    expect(await helper.list('x'.repeat(256))).toBe('not_found');
    expect(await helper.list('f/x')).toBe('bad_target');
    expect(await helper.list('none/x')).toBe('not_found');
  });

  it('gives the first in order of many, and says that there are more', async () => {
    user.sh('mkdir m; cd m; seq -f f%05.0f 5000 | xargs touch; mkdir z1 z2 a1');
    const all = await listing('m');
    expect(all.truncated).toBe(true);
    expect(all.entries).toHaveLength(2_000);
    expect(names(all).slice(0, 4)).toStrictEqual(['a1', 'z1', 'z2', 'f00001']);
    expect(names(all).at(-1)).toBe('f01997');
    user.sh('cd m; rm -f f0[2-9]* f00[0-9]* ; rm -rf z1 z2 a1; ls | wc -l');
    const most = names(await listing('m')).length;
    expect((await listing('m', most)).truncated).toBe(false);
    expect((await listing('m', most - 1)).truncated).toBe(true);
  });

  it('names with newlines, of 255 bytes, and not of UTF-8', async () => {
    user.sh(`mkdir n; cd n; touch "$(printf 'a\\nb')" "$(printf '\\377\\376')" ${'y'.repeat(255)}`);
    expect(names(await listing('n')).sort()).toStrictEqual(['a\nb', 'y'.repeat(255), '\ufffd\ufffd'].sort());
    expect(await helper.read('n/a\nb')).toMatchObject({ text: true, size: 0 });
    expect(await helper.read('n/\ufffd\ufffd')).toBe('not_found');
  });

  it('sizes and times beyond what numbers and dates can say', async () => {
    user.sh('mkdir x; touch x/huge x/late x/early');
    utimesSync(`${user.home}/x/late`, 1e11, 1e11);
    utimesSync(`${user.home}/x/early`, -1e11, -1e11);
    truncateSync(`${user.home}/x/huge`, 2 ** 43);
    const { entries } = await listing('x');
    expect(entries.find(({ name }) => name === 'huge')?.size).toBe(2 ** 43);
    for (const entry of entries) expect(JSON.stringify(entry)).toMatch(/"modified":"\d{4}-\d\d-\d\dT[\d:.]{12}Z"/);
  });

  it('a folder that can’t be read is not an empty one', async () => {
    user.sh(
      'mkdir closed; touch closed/f; mkdir unsearchable; touch unsearchable/f; chmod 000 closed; chmod 600 unsearchable',
    );
    expect(await helper.list('closed')).toBe('file_failed');
    expect(await helper.list('unsearchable')).toBe('file_failed');
    expect(await helper.read('closed/f')).toBe('file_failed');
  });
});

describe('read', () => {
  it.each<readonly [name: string, content: Buffer, expected: Record<string, unknown>]>([
    ['text', Buffer.from('héllo\n'), { text: true, content: 'héllo\n', reason: null }],
    ['nothing', Buffer.alloc(0), { text: true, content: '', reason: null }],
    ['a byte order mark, kept', Buffer.from('\ufeffx'), { text: true, content: '\ufeffx', reason: null }],
    ['NUL in the first 8 KiB', Buffer.from(`${'x'.repeat(8191)}\0`), { text: false, content: null, reason: 'binary' }],
    [
      'NUL after them',
      Buffer.from(`${'x'.repeat(8192)}\0`),
      { text: true, content: `${'x'.repeat(8192)}\0`, reason: null },
    ],
    ['a byte that is no UTF-8', Buffer.from('ok\xff', 'latin1'), { text: false, content: null, reason: 'binary' }],
    ['a character cut at the end', Buffer.from('ü').subarray(0, 1), { text: false, content: null, reason: 'binary' }],
    ['256 KiB', Buffer.alloc(262_144, 1), { text: true, content: '\u0001'.repeat(262_144), reason: null }],
    ['one more', Buffer.alloc(262_145, 'x'), { text: false, content: null, reason: 'too_large' }],
  ])('%s', async (_name, content, expected) => {
    writeFileSync(`${user.home}/f`, content, { mode: 0o644 });
    expect(await helper.read('f')).toStrictEqual({ size: content.length, ...expected });
  });

  it('tells the kinds that it is not for, without opening them', async () => {
    await kinds();
    // Nobody writes to the pipe: opening it would wait for ever.
    expect(await helper.read('p')).toBe('bad_target');
    expect(await helper.read('s')).toBe('bad_target');
    expect(await helper.read('d')).toBe('is_directory');
    expect(await helper.read('')).toBe('is_directory');
    expect(await helper.read('l')).toBe('symlink');
    expect(await helper.read('none')).toBe('not_found');
    expect(await helper.read('f')).toMatchObject({ content: 'text\n' });
  });

  it('does not wait for a lease that the user holds', async () => {
    user.sh('echo x > f');
    await user.start([`${process.cwd()}/dist/test/lease`, 'f']);
    expect(await helper.read('f')).toBe('file_failed');
  });

  it('a file that grows is told whole, or as too large', async () => {
    user.sh(': > f');
    await user.start(['/bin/sh', '-c', 'echo on; while echo 0123456789 >> f; do :; done']);
    for (let last = -1; last < 262_144; ) {
      const answer = (await helper.read('f')) as { size: number; text: boolean; content: string; reason: string };
      if (answer.reason === 'too_large') break;
      expect(answer.content.length).toBe(answer.size);
      // The end need not be a line's: the kernel writes what crosses a page's end in two steps.
      expect('0123456789\n'.repeat(answer.size / 11 + 1).startsWith(answer.content)).toBe(true);
      expect(answer.size).toBeGreaterThanOrEqual(last);
      last = answer.size;
      // Far on at once: what matters is a read while it grows.
      if (last > 20_000) break;
    }
  });
});

describe('write', () => {
  it('makes a file, 0600, and replaces one, keeping its mode and no set-id bit', async () => {
    expect(await helper.writeFile('repos/new', 'ü')).toStrictEqual({ size: 2 });
    expect(user.tree(`${user.home}/repos`)).toStrictEqual([
      `new 100600 ${uid}:${uid} ${Buffer.from('ü').toString('latin1')}`,
    ]);
    user.sh('chmod 4755 repos/new');
    expect(await helper.writeFile('repos/new', 'two')).toStrictEqual({ size: 3 });
    expect(user.tree(`${user.home}/repos`)).toStrictEqual([`new 100755 ${uid}:${uid} two`]);
    user.sh('chmod 440 repos/new');
    expect(await helper.writeFile('repos/new', '')).toStrictEqual({ size: 0 });
    expect(user.tree(`${user.home}/repos`)).toStrictEqual([`new 100440 ${uid}:${uid} `]);
    expect(user.tree()).toHaveLength(5);
  });

  it('leaves another name of the old file as it was', async () => {
    user.sh('echo old > a; ln a b');
    expect(await helper.writeFile('a', 'new')).toStrictEqual({ size: 3 });
    expect(readFileSync(`${user.home}/b`, 'utf8')).toBe('old\n');
  });

  it('a reader sees the old or the new, never a half', async () => {
    const contents = ['a', 'b'].map((letter) => letter.repeat(200_000));
    await helper.writeFile('f', contents[0] ?? '');
    const reader = await user.helper();
    let over = false;
    const reading = (async () => {
      const seen = new Set<string>();
      while (!over) {
        const { content } = (await reader.read('f')) as { content: string };
        expect(contents).toContain(content);
        seen.add(content);
      }
      return seen.size;
    })();
    for (let round = 0; round < 60; round += 1) await helper.writeFile('f', contents[round % 2] ?? '');
    over = true;
    expect(await reading).toBe(2);
  });

  it('tells what it can’t replace, and leaves it', async () => {
    await kinds();
    const before = user.tree();
    expect(await helper.writeFile('l', 'x')).toBe('symlink');
    expect(await helper.writeFile('d', 'x')).toBe('is_directory');
    expect(await helper.writeFile('p', 'x')).toBe('bad_target');
    expect(await helper.writeFile('s', 'x')).toBe('bad_target');
    for (const path of ['', '.', 'repos', 'work', 'repos/', './work/.']) {
      expect(await helper.writeFile(path, 'x'), path).toBe('bad_target');
    }
    expect(await helper.writeFile('none/f', 'x')).toBe('not_found');
    expect(await helper.writeFile('f/f', 'x')).toBe('bad_target');
    expect(await helper.writeFile('x'.repeat(256), 'x')).toBe('not_found');
    expect(user.tree()).toStrictEqual(before);
  });
});

describe('delete', () => {
  it('a file, a pipe, a socket, a link itself, a folder with all that is in it', async () => {
    await kinds();
    user.sh('ln -s d dl; echo x > d/e/f; ln -s ../f d/l2');
    for (const path of ['p', 's', 'l', 'dl/']) expect(await helper.delete(path), path).toStrictEqual({});
    expect(readFileSync(`${user.home}/d/e/f`, 'utf8')).toBe('x\n');
    expect(await helper.delete('d')).toStrictEqual({});
    expect(readFileSync(`${user.home}/f`, 'utf8')).toBe('text\n');
    expect(await helper.delete('f')).toStrictEqual({});
    expect(user.tree()).toStrictEqual(user.newTree);
  });

  it('never the home, repos or work, by whatever name', async () => {
    user.sh('mkdir d; ln -s .. d/up; ln -s d/../repos r');
    const before = user.tree();
    for (const path of ['', '.', 'repos', 'work', 'repos/', './work', 'd/up/repos', 'd/up/d/up/work']) {
      expect(await helper.delete(path), path).toBe('bad_target');
    }
    expect(user.tree()).toStrictEqual(before);
    expect(await helper.delete('d/none')).toBe('not_found');
    expect(await helper.delete('r')).toStrictEqual({});
  });

  it('what can’t be deleted stays, with its mode', async () => {
    user.sh('mkdir -p ro/d; echo x > ro/f; chmod 000 ro/d; chmod 555 ro');
    const before = user.tree();
    expect(await helper.delete('ro/f')).toBe('file_failed');
    expect(await helper.delete('ro/d')).toBe('file_failed');
    expect(await helper.writeFile('ro/f', 'y')).toBe('write_failed');
    expect(await helper.writeFile('ro/g', 'y')).toBe('write_failed');
    expect(user.tree()).toStrictEqual(before);
    expect(await helper.delete('ro')).toStrictEqual({});
    expect(user.tree()).toStrictEqual(user.newTree);
  });
});

describe('a home that is not as it was made', () => {
  it.each([
    ['missing', 'mv "$SPACE/home" "$SPACE/other"'],
    ['a link', 'mv "$SPACE/home" "$SPACE/other"; ln -s other "$SPACE/home"'],
    ['a file', 'mv "$SPACE/home" "$SPACE/other"; : > "$SPACE/home"'],
  ])('%s: nothing works on it but a reset', async (_name, script) => {
    user.sh(script);
    expect(await helper.list('')).toBe('workspace_broken');
    expect(await helper.read('f')).toBe('workspace_broken');
    expect(await helper.writeFile('f', 'x')).toBe('workspace_broken');
    expect(await helper.delete('f')).toBe('workspace_broken');
    expect(await helper.reset()).toStrictEqual({});
    expect(user.tree()).toStrictEqual(user.newTree);
    expect(await helper.writeFile('f', 'x')).toStrictEqual({ size: 1 });
  });
});
