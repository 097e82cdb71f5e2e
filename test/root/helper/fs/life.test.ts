import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FsHelper, frameOf } from '../../../support/fs-helper.ts';
import { asUser, runToEnd } from '../../worker/support/as-worker.ts';
import { UserSpace } from './support/user-space.ts';

const uid = 937_600;
let user: UserSpace;

beforeEach(() => {
  user = new UserSpace(uid);
});
afterEach(() => user.remove());

const statusOf = (pid: number, thread: string): string =>
  readFileSync(`/proc/${pid}/task/${thread}/status`, 'latin1').replaceAll(/[\t ]+/g, ' ');

describe('a helper', () => {
  it('is root until it is told whose it is, and then the user’s alone, in every thread', async () => {
    const helper = new FsHelper({ under: ['setpriv', '--groups=4,27'] });
    expect(await helper.next()).toStrictEqual({ kind: 'ready' });
    expect(statusOf(helper.pid, String(helper.pid))).toMatch(/^Groups: 4 27 ?$/m);
    for (const thread of readdirSync(`/proc/${helper.pid}/task`)) {
      expect(statusOf(helper.pid, thread)).toContain('Uid: 0 0 0 0');
    }
    helper.send({ kind: 'become', uid, space: user.space });
    expect(await helper.next()).toStrictEqual({ kind: 'dropped' });
    const threads = readdirSync(`/proc/${helper.pid}/task`);
    expect(threads.length).toBeGreaterThan(1);
    for (const thread of threads) {
      const status = statusOf(helper.pid, thread);
      const ids = `${uid} ${uid} ${uid} ${uid}`;
      const nothing = '0000000000000000';
      for (const line of [
        `Uid: ${ids}`,
        `Gid: ${ids}`,
        `CapPrm: ${nothing}`,
        `CapEff: ${nothing}`,
        `CapInh: ${nothing}`,
        `CapAmb: ${nothing}`,
      ])
        expect(status).toContain(line);
      expect(status).toMatch(/^Groups: ?$/m);
    }
    await helper.end();
    expect(await helper.exited).toStrictEqual({ code: 0, signal: null });
    expect(helper.errors).toBe('');
  });

  it('cannot be traced or looked into by its user, and SIGUSR1 opens nothing', async () => {
    const helper = await user.helper();
    const trace = runToEnd(asUser(uid, uid, ['strace', '-p', String(helper.pid)]));
    expect(trace.stderr).toMatch(/not permitted/i);
    expect(lstatSync(`/proc/${helper.pid}/mem`).uid).toBe(0);
    expect(runToEnd(asUser(uid, uid, ['ls', `/proc/${helper.pid}/fd`])).status).not.toBe(0);
    expect(runToEnd(asUser(uid, uid, ['kill', '-USR1', String(helper.pid)])).status).toBe(0);
    expect(await helper.list('')).toMatchObject({ truncated: false });
    const held = readdirSync(`/proc/${helper.pid}/fd`).map((name) => readlinkSync(`/proc/${helper.pid}/fd/${name}`));
    // The three of its own; an inspector would listen on one more.
    expect(held.filter((target) => target.startsWith('socket:'))).toHaveLength(3);
    expect(helper.errors).toBe('');
  });

  it('holds no more descriptors after many operations than before, however they end', async () => {
    user.sh('echo x > f; ln -s loop loop; mkdir d; mkfifo p');
    const helper = await user.helper();
    const everything = async () => {
      for (const path of ['', 'f', 'd', 'loop', 'loop/x', 'f/x', 'p', 'none', 'none/x', '../x']) {
        await helper.list(path);
        await helper.read(path);
        await helper.writeFile(path, 'x');
      }
      user.sh('rm -f none; mkdir -p gone/deeper');
      await helper.delete('gone');
    };
    const count = () => readdirSync(`/proc/${helper.pid}/fd`).length;
    await everything();
    const before = count();
    for (let round = 0; round < 10; round += 1) await everything();
    expect(count()).toBe(before);
  });
});

describe('a space is refused, with the helper still root and ending', () => {
  it.each([
    ['that is not there', () => `${user.space}-not`],
    [
      'that is a link to it',
      () => {
        user.sh('ln -s "$SPACE" "$OUT/link"');
        return `${user.outside}/link`;
      },
    ],
    [
      'that is a file',
      () => {
        user.sh(': > "$OUT/file"; chmod 700 "$OUT/file"');
        return `${user.outside}/file`;
      },
    ],
    [
      'that others may enter',
      () => {
        user.sh('chmod 711 "$SPACE"');
        return user.space;
      },
    ],
    [
      'with a set-id bit',
      () => {
        user.sh('chmod g+s "$SPACE"');
        return user.space;
      },
    ],
    ['of another user', () => user.folder],
  ])('%s', async (_name, pathOf) => {
    const helper = new FsHelper();
    await helper.next();
    helper.send({ kind: 'become', uid, space: pathOf() });
    expect(await helper.next()).toStrictEqual({ kind: 'refused', code: 'workspace_broken' });
    await helper.exited;
  });

  it('of another uid than was named', async () => {
    const helper = new FsHelper();
    await helper.next();
    helper.send({ kind: 'become', uid: uid + 1, space: user.space });
    expect(await helper.next()).toStrictEqual({ kind: 'refused', code: 'workspace_broken' });
  });
});

describe('what is not of the contract ends the helper without a word', () => {
  const become = () => ({ kind: 'become', uid, space: user.space });
  const list = { kind: 'call', id: 1, verb: 'list', path: '', entriesMax: 10 };
  const early: readonly (readonly [string, () => unknown])[] = [
    ['a call before there is a user', () => list],
    ['root', () => ({ ...become(), uid: 0 })],
    ['no JSON', () => '{'],
  ];
  it.each(early)('before the drop: %s', async (_name, message) => {
    const helper = new FsHelper();
    await helper.next();
    helper.send(message());
    expect(await helper.next()).toBeUndefined();
    expect(await helper.exited).toStrictEqual({ code: 70, signal: null });
    expect(helper.errors).toBe('');
  });

  const late: readonly (readonly [string, () => Buffer])[] = [
    ['another user', () => frameOf({ ...become(), uid: uid + 1 })],
    ['an unknown verb', () => frameOf({ ...list, verb: 'chmod' })],
    ['a frame of no bytes', () => Buffer.alloc(4)],
    ['a frame over the limit', () => Buffer.from([0, 0x40, 0, 1])],
    ['bytes that are no UTF-8', () => Buffer.concat([Buffer.from([0, 0, 0, 3]), Buffer.from('"\xff"', 'latin1')])],
  ];
  it.each(late)('after it: %s', async (_name, bytes) => {
    const helper = await user.helper();
    helper.write(bytes());
    expect(await helper.next()).toBeUndefined();
    expect(await helper.exited).toStrictEqual({ code: 70, signal: null });
    expect(helper.errors).toBe('');
  });
});
