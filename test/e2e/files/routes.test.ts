import { chownSync, existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ask, contentOf } from '../../support/files.ts';
import { Service } from '../../support/service.ts';
import { homeOf, spaceOf, systemTools, uidOf } from '../../support/user.ts';

let service: Service;
let next = 450_000;

beforeAll(async () => {
  service = await Service.start({ settings: systemTools('sh') });
});
afterAll(() => service.stop());

/** Has the user make something, and makes sure that it was made. */
const made = async (user: number, script: string): Promise<void> => {
  const { body } = await service.exec(user, 'sh', ['-ec', script]);
  expect(body, script).toMatchObject({ exitCode: 0, stderr: '' });
};
const fieldsOf = async (route: Parameters<typeof ask>[1], fields: Readonly<Record<string, unknown>>) => {
  const { status, text } = await ask(service, route, fields);
  expect(status, text).toBe(200);
  return JSON.parse(text) as Record<string, unknown> & { entries: { name: string; kind: string }[] };
};
const modeOf = (path: string): number => statSync(path).mode & 0o7777;

describe('a list', () => {
  it('of a new user makes the space, and shows the two folders', async () => {
    const user = next++;
    const { path, entries, truncated } = await fieldsOf('files/list', { user, path: null });
    expect([path, truncated, entries.map(({ name, kind }) => [name, kind])]).toEqual([
      '',
      false,
      [
        ['repos', 'dir'],
        ['work', 'dir'],
      ],
    ]);
    expect(modeOf(spaceOf(service, user))).toBe(0o700);
    const line = await service.audited((found) => found.action === 'files.list' && found['user'] === user);
    expect(Object.keys(line).sort()).toEqual(['action', 'ms', 'status', 'time', 'user']);
  });

  it('has folders first, then names, with kinds and times; of more than 2,000 the first', async () => {
    const user = next++;
    await made(user, 'mkdir d; cd d; mkdir z; printf 12345 >b; ln -s /etc/passwd a; mkfifo p; touch -d @1 b');
    const { entries } = await fieldsOf('files/list', { user, path: 'd' });
    expect(entries.map(({ name, kind }) => [name, kind])).toEqual([
      ['z', 'dir'],
      ['a', 'symlink'],
      ['b', 'file'],
      ['p', 'other'],
    ]);
    expect(entries[2]).toEqual({ name: 'b', kind: 'file', size: 5, modified: '1970-01-01T00:00:01.000Z' });
    expect(JSON.stringify(entries)).not.toContain('passwd');
    await made(user, 'mkdir many; cd many; seq 2001 | xargs touch');
    const many = await fieldsOf('files/list', { user, path: 'many' });
    expect([many.entries.length, many['truncated']]).toEqual([2_000, true]);
  });
});

describe('a read', () => {
  it('tells text, and of the rest why not', async () => {
    const user = next++;
    await made(
      user,
      "printf 'a\\r\\n\\303\\274' >t; : >e; printf 'a\\0b' >n; printf '\\377' >i; head -c 262145 /dev/zero | tr '\\0' x >l",
    );
    const told = async (path: string) => {
      const { size, text, content, reason } = await fieldsOf('files/read', { user, path });
      return [size, text, content, reason];
    };
    expect(await told('t')).toEqual([5, true, 'a\r\nü', null]);
    expect(await told('e')).toEqual([0, true, '', null]);
    expect(await told('n')).toEqual([3, false, null, 'binary']);
    expect(await told('i')).toEqual([1, false, null, 'binary']);
    expect(await told('l')).toEqual([262_145, false, null, 'too_large']);
  });
});

describe('a write', () => {
  it('makes a file of the user’s, and replaces one whole, keeping its mode', async () => {
    const user = next++;
    const path = 'repos/ä "\n';
    const first = await ask(service, 'files/write', { user, path, content: 'ü\u0001"\\' });
    expect(first.status, first.text).toBe(200);
    expect(first.body).toEqual({ written: true, size: 5, operationId: first.headers['operation-id'] });
    const place = join(homeOf(service, user), path);
    expect(readFileSync(place, 'utf8')).toBe('ü\u0001"\\');
    expect([modeOf(place), statSync(place).uid, statSync(place).gid]).toEqual([0o600, uidOf(user), uidOf(user)]);
    await made(user, `chmod 640 repos/*`);
    const { ino } = statSync(place);
    expect((await ask(service, 'files/write', { user, path, content: '' })).body).toMatchObject({ size: 0 });
    expect([modeOf(place), statSync(place).size]).toEqual([0o640, 0]);
    expect(statSync(place).ino).not.toBe(ino);
  });

  it.each([
    ['NUL', 'a\0b'],
    ['half a surrogate pair', 'a\ud800'],
    ['more than is taken', 'x'.repeat(262_145)],
    ['another type', 7],
  ])('of %s is a bad request that does not repeat it', async (_name, content) => {
    const user = next++;
    const { status, body, text } = await ask(service, 'files/write', { user, path: 'f', content });
    expect([status, body.error]).toEqual([400, 'bad_request']);
    expect(body.message).toContain('"content"');
    expect(text.length).toBeLessThan(300);
    expect(existsSync(spaceOf(service, user))).toBe(false);
  });
});

describe('a delete', () => {
  it('takes a file, a link itself, and a folder with all that is in it', async () => {
    const user = next++;
    await made(
      user,
      'printf 1 >f; mkdir -p kept d/e/f; printf 1 >kept/k; ln -s kept l; ln -s ../kept d/l; touch d/e/f/g; chmod 0 d/e',
    );
    for (const path of ['f', 'l', 'd']) {
      const { status, body, headers } = await ask(service, 'files/delete', { user, path });
      expect([status, body]).toEqual([200, { deleted: true, operationId: headers['operation-id'] }]);
    }
    const { entries } = await fieldsOf('files/list', { user });
    expect(entries.map(({ name }) => name)).toEqual(['kept', 'repos', 'work']);
    expect(await contentOf(service, user, 'kept/k')).toBe('1');
  });

  it('of a worktree or a conversation takes git’s registrations along', async () => {
    const user = next++;
    const talk = 'work/0b0e7a5e-0000-4000-8000-000000000001';
    const add = (name: string) => `git -C repos/p worktree add -q --detach "$HOME/${talk}/${name}"`;
    await made(
      user,
      `git init -q repos/p; cd repos/p; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; cd; ${add('p')}; ${add('q')}`,
    );
    const registered = async () => (await service.exec(user, 'sh', ['-c', 'ls repos/p/.git/worktrees'])).body.stdout;
    expect(await registered()).toBe('p\nq\n');
    expect((await ask(service, 'files/delete', { user, path: `${talk}/p` })).status).toBe(200);
    expect(await registered()).toBe('q\n');
    await made(user, add('p'));
    expect((await ask(service, 'files/delete', { user, path: talk })).status).toBe(200);
    expect(await registered()).toBe('');
  });
});

describe('what can’t be', () => {
  const script = `mkdir d; printf 1 >f; ln -s f l; ln -s d dl; ln -s /etc abs; ln -s ../../.. out; mkfifo p; ln -s "$HOME/d" own`;
  let user: number;
  beforeAll(async () => {
    user = next++;
    await made(user, script);
  });
  const routes = ['files/list', 'files/read', 'files/write', 'files/delete'] as const;
  // Each path, and what list, read, write and delete say to it.
  it.each([
    ['/etc/passwd', ['outside_workspace', 'outside_workspace', 'outside_workspace', 'outside_workspace']],
    ['../x', ['outside_workspace', 'outside_workspace', 'outside_workspace', 'outside_workspace']],
    ['d/../f', ['outside_workspace', 'outside_workspace', 'outside_workspace', 'outside_workspace']],
    ['a\0b', ['outside_workspace', 'outside_workspace', 'outside_workspace', 'outside_workspace']],
    ['abs/passwd', ['outside_workspace', 'outside_workspace', 'outside_workspace', 'outside_workspace']],
    ['own/x', ['outside_workspace', 'outside_workspace', 'outside_workspace', 'outside_workspace']],
    ['out/x', ['outside_workspace', 'outside_workspace', 'outside_workspace', 'outside_workspace']],
    ['missing/x', ['not_found', 'not_found', 'not_found', 'not_found']],
    ['dl/missing', ['not_found', 'not_found', 200, 200]],
    ['f', ['bad_target', 200, 200, 0]],
    ['f/x', ['bad_target', 'bad_target', 'bad_target', 'bad_target']],
    ['l', ['symlink', 'symlink', 'symlink', 0]],
    ['l/', ['symlink', 'symlink', 'symlink', 0]],
    ['d', [200, 'is_directory', 'is_directory', 0]],
    ['p', ['bad_target', 'bad_target', 'bad_target', 0]],
    ['', [200, 'is_directory', 'bad_target', 'bad_target']],
    ['repos', [200, 'is_directory', 'bad_target', 'bad_target']],
    ['./work/', [200, 'is_directory', 'bad_target', 'bad_target']],
  ] as const)('%j', async (path, expected) => {
    for (const [index, route] of routes.entries()) {
      const want = expected[index];
      if (want === 0) continue;
      const content = route === 'files/write' ? { content: '1' } : {};
      const { status, body } = await ask(service, route, { user, path, ...content });
      expect(body.error ?? status, route).toBe(want);
    }
  });

  it.each([
    ['no user', {}],
    ['a user too large', { user: 1_000_001 }],
    ['a field more', { user: 1, recursive: true }],
    ['a path of another type', { user: 1, path: 7 }],
  ])('with %s is a bad request', async (_name, fields) => {
    for (const route of [...routes, 'workspace/reset'] as const)
      expect((await ask(service, route, fields)).body.error, route).toBe('bad_request');
  });

  it('a folder that its user closed is told so, and the others are served', async () => {
    const own = next++;
    await made(own, 'mkdir c; printf 1 >c/f; chmod 0 c');
    const codes = [];
    for (const route of ['files/list', 'files/read'] as const)
      codes.push((await ask(service, route, { user: own, path: route === 'files/list' ? 'c' : 'c/f' })).body.error);
    codes.push((await ask(service, 'files/write', { user: own, path: 'c/f', content: '2' })).body.error);
    expect(codes).toEqual(['file_failed', 'file_failed', 'write_failed']);
    await made(own, 'chmod 700 c; grep -qx 1 c/f');
  });
});

describe('a reset', () => {
  it('empties the space and makes the four folders anew, whatever was there', async () => {
    const user = next++;
    await made(user, 'mkdir -p a/b; chmod 0 a; printf 1 >../tmp/x; printf 1 >../y; rmdir work; chmod 500 repos');
    const { status, body, headers } = await ask(service, 'workspace/reset', { user });
    expect([status, body]).toEqual([200, { reset: true, operationId: headers['operation-id'] }]);
    const { body: seen } = await service.exec(user, 'sh', ['-c', 'cd ..; find . -printf "%p %m\\n" | sort']);
    expect(seen.stdout).toBe('. 700\n./home 700\n./home/repos 700\n./home/work 700\n./tmp 700\n');
    expect((await ask(service, 'files/write', { user, path: 'f', content: 'after' })).status).toBe(200);
    expect(await contentOf(service, user, 'f')).toBe('after');
  });

  it('is the way out of a home that is no folder, and not of a space that is another’s', async () => {
    const user = next++;
    await made(user, 'cd ..; mv home moved; ln -s moved home');
    for (const route of ['files/list', 'files/delete'] as const)
      expect((await ask(service, route, { user, path: 'x' })).body.error).toBe('workspace_broken');
    expect((await ask(service, 'files/write', { user, path: 'x', content: '' })).body.error).toBe('workspace_broken');
    expect((await ask(service, 'workspace/reset', { user })).status).toBe(200);
    expect((await fieldsOf('files/list', { user })).entries.map(({ name }) => name)).toEqual(['repos', 'work']);
    chownSync(spaceOf(service, user), uidOf(user) + 1, uidOf(user));
    expect((await ask(service, 'workspace/reset', { user })).body.error).toBe('workspace_broken');
  });
});
