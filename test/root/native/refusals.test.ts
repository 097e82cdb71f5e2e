import {
  chmodSync,
  chownSync,
  existsSync,
  lchownSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { message, native, type Plan, planBody, Spawner, sanitized, wire } from '../../support/spawner-client.ts';
import { eventually } from '../../support/wait.ts';

const uid = 900_201;
const { EACCES, EPERM, ENOENT, ENOTDIR, EXDEV, E2BIG, ENOMEM, EPROTO, ELOOP, ETIMEDOUT, ENOEXEC } = constants.errno;

describe.each([
  ['release', native],
  ['sanitized', sanitized],
])('what is refused, %s', (_name, program) => {
  let spawner: Spawner;
  let space: string;
  let ran: string;
  beforeAll(async () => {
    spawner = await Spawner.start({ program });
    space = spawner.makeSpace(uid);
    ran = join(space, 'home/ran');
  });
  afterAll(async () => await spawner.stop());

  const touch = { args: ['/usr/bin/touch', 'ran'] };
  const refused = async (plan: Partial<Plan>, step: string, errno: number): Promise<void> => {
    const { failed, exit, clean } = await spawner.run({ uid, args: ['/usr/bin/touch', ran], ...plan });
    expect({ failed, exit, clean }).toEqual({ failed: { step: wire(step), errno }, exit: undefined, clean: true });
    expect(existsSync(ran)).toBe(false);
  };

  test('the set-up works: the same plan, unspoiled, runs', async () => {
    const { exit } = await spawner.run({ uid, ...touch });
    expect(exit?.code).toBe(0);
    expect(existsSync(ran)).toBe(true);
    rmSync(ran);
  });

  describe('the directory', () => {
    beforeAll(() => {
      const home = join(space, 'home');
      mkdirSync(join(home, 'real/inner'), { recursive: true });
      symlinkSync('real', join(home, 'inside'));
      symlinkSync('../tmp', join(home, 'out'));
      symlinkSync(join(home, 'real'), join(home, 'absolute'));
      symlinkSync('/proc/self/cwd', join(home, 'magic'));
      symlinkSync('loop', join(home, 'loop'));
      writeFileSync(join(home, 'file'), '');
      for (const name of ['real', 'real/inner']) chownSync(join(home, name), uid, uid);
      mkdirSync(join(home, 'closed'), { mode: 0o700 });
    });

    test('a link that stays inside is followed', async () => {
      const { stdout } = await spawner.run({ uid, args: ['/bin/pwd', '-P'], directory: 'inside/inner' });
      expect(stdout.toString()).toBe(`${space}/home/real/inner\n`);
    });

    test.each([
      ['out', EXDEV],
      ['absolute', EXDEV],
      ['magic', EXDEV],
      ['..', EXDEV],
      ['real/../..', EXDEV],
      ['missing', ENOENT],
      ['file', ENOTDIR],
      ['file/below', ENOTDIR],
      ['loop', ELOOP],
      ['closed', EACCES],
    ])('%s', async (directory, errno) => await refused({ directory }, 'STEP_DIRECTORY', errno));
  });

  describe('the space', () => {
    const other = 900_202;
    test.each([
      ['of another mode', () => chmodSync(space, 0o750), () => chmodSync(space, 0o700), EACCES],
      ['with a set-gid bit', () => chmodSync(space, 0o2700), () => chmodSync(space, 0o700), EACCES],
      ['of another owner', () => chownSync(space, other, uid), () => chownSync(space, uid, uid), EPERM],
      ['of another group', () => chownSync(space, uid, other), () => chownSync(space, uid, uid), EPERM],
      ['of root', () => chownSync(space, 0, 0), () => chownSync(space, uid, uid), EPERM],
    ])('%s', async (_what, spoil, mend, errno) => {
      spoil();
      try {
        await refused({}, 'STEP_SPACE', errno);
      } finally {
        mend();
      }
    });

    test('a link to it', async () => {
      const link = `${space}-link`;
      symlinkSync(space, link);
      lchownSync(link, uid, uid);
      await refused({ space: link }, 'STEP_SPACE', ENOTDIR);
    });

    test('missing', async () => await refused({ space: `${space}-none` }, 'STEP_SPACE', ENOENT));
    test('a file', async () => {
      writeFileSync(`${space}-file`, '', { mode: 0o700 });
      chownSync(`${space}-file`, uid, uid);
      await refused({ space: `${space}-file` }, 'STEP_SPACE', ENOTDIR);
    });
  });

  describe('the home', () => {
    const moved = (make: () => void) => async (errno: number) => {
      renameSync(join(space, 'home'), join(space, 'away'));
      try {
        make();
        await refused({ args: ['/usr/bin/touch', join(space, 'away/ran')] }, 'STEP_HOME', errno);
        expect(existsSync(join(space, 'away/ran'))).toBe(false);
      } finally {
        rmSync(join(space, 'home'), { force: true });
        renameSync(join(space, 'away'), join(space, 'home'));
      }
    };
    test('missing', async () => await moved(() => undefined)(ENOENT));
    test('a link', async () => await moved(() => symlinkSync('away', join(space, 'home')))(ENOTDIR));
    test('a file', async () => await moved(() => writeFileSync(join(space, 'home'), ''))(ENOTDIR));
  });

  describe('the program', () => {
    test('missing', async () => await refused({ program: '/nowhere/tool' }, 'STEP_EXEC', ENOENT));
    test('not executable', async () => await refused({ program: '/etc/passwd' }, 'STEP_EXEC', EACCES));
    test('not a program', async () => {
      writeFileSync(join(space, 'home/text'), 'text', { mode: 0o755 });
      chownSync(join(space, 'home/text'), uid, uid);
      await refused({ program: join(space, 'home/text') }, 'STEP_EXEC', ENOEXEC);
    });
    test('found by no search', async () => {
      const { failed } = await spawner.run({ uid, args: ['touch', 'ran'], program: '/touch' });
      expect(failed).toEqual({ step: wire('STEP_EXEC'), errno: ENOENT });
    });
    test('too much to hand over', async () =>
      await refused({ args: ['/usr/bin/touch', ran, 'x'.repeat(200_000)] }, 'STEP_EXEC', E2BIG));
    // From what execve itself refuses to what it can no longer refuse but not map either.
    test.each([4096, 65_536, 200_000, 300_000])(
      'an address limit of %i',
      async (maxAddress) => await refused({ maxAddress, args: ['/usr/bin/touch', ran] }, 'STEP_EXEC', ENOMEM),
    );
    test('an address limit that is enough', async () => {
      const { exit } = await spawner.run({ uid, args: ['/bin/sh', '-c', 'exit 7'], maxAddress: 1 << 30 });
      expect(exit).toMatchObject({ flags: wire('EXIT_HAS_CODE'), code: 7 });
    });
  });

  describe('a plan that is not one', () => {
    const good = (): Buffer => planBody({ uid, args: ['/usr/bin/touch', ran] }, space);
    const spoiled = (spoil: (body: Buffer) => Buffer | undefined): Buffer => {
      const body = good();
      return spoil(body) ?? body;
    };
    const u32 = (at: number, value: number) => (body: Buffer) => {
      body.writeUInt32BE(value, at);
      return undefined;
    };
    const u64 = (at: number, value: bigint) => (body: Buffer) => {
      body.writeBigUInt64BE(value, at);
      return undefined;
    };
    const tooMuch = 9_007_199_254_740_992n;
    const plan = (more: Partial<Plan>) => () => planBody({ uid, args: ['/usr/bin/touch', ran], ...more }, space);

    test.each<[string, (body: Buffer) => Buffer | undefined]>([
      ['another version', u32(0, wire('WIRE_VERSION') + 1)],
      ['an earlier version', u32(0, wire('WIRE_VERSION') - 1)],
      ['root', u32(4, 0)],
      ['a uid below the range', u32(4, 19_999)],
      ['a uid above the range', u32(4, 1_020_001)],
      ['a uid of a killer', u32(4, 0x4000_0001)],
      ['no uid at all', u32(4, 0xffff_ffff)],
      ['too long a time limit', u64(8, 604_800_001n)],
      ['a time limit that would be negative', u64(8, 0xffff_ffff_ffff_ffffn)],
      ['too large an output cap', u64(16, tooMuch)],
      ['too large a process limit', u64(24, tooMuch)],
      ['too large a file limit', u64(32, tooMuch)],
      ['no limit at all', u64(40, 0xffff_ffff_ffff_ffffn)],
      ['too long a grace', u32(48, 5001)],
      ['no arguments', u32(52, 0)],
      ['fewer arguments than strings', u32(52, 1)],
      ['more arguments than strings', u32(52, 4)],
      ['too many arguments', u32(52, 65_537)],
      ['far too many arguments', u32(52, 0xffff_ffff)],
      ['more environment than strings', u32(56, 2)],
      ['too much environment', u32(56, 257)],
      ['a length that is too short', (body) => u32(60, body.readUInt32BE(60) - 1)(body)],
      ['a length that is too long', (body) => u32(60, body.readUInt32BE(60) + 1)(body)],
      ['no last NUL', (body) => body.fill('A', body.length - 1)],
      [
        'bytes after the last string',
        (body) => {
          const longer = Buffer.concat([body, Buffer.from('x\0')]);
          longer.writeUInt32BE(longer.length - 64, 60);
          return longer;
        },
      ],
      ['cut in the fixed part', (body) => body.subarray(0, 63)],
      ['empty', () => Buffer.alloc(0)],
      ['a relative program', plan({ program: 'bin/touch' })],
      ['an empty program', plan({ program: '' })],
      ['a relative space', plan({ space: 'u1' })],
      ['an absolute directory', plan({ directory: '/' })],
      ['an environment entry without =', plan({ env: ['PATH'] })],
      ['an environment entry without a key', plan({ env: ['=x'] })],
      ['an environment key that starts with a digit', plan({ env: ['1A=x'] })],
      ['an environment key that is no name', plan({ env: ['A-B=x'] })],
      ['an empty environment entry', plan({ env: [''] })],
    ])('%s', async (_what, spoil) => {
      const connection = await spawner.connect();
      connection.socket.write(message(wire('MSG_RUN'), spoiled(spoil)));
      const { failed, exit, clean } = await connection.outcome;
      expect({ failed, exit, clean }).toEqual({
        failed: { step: wire('STEP_PLAN'), errno: EPROTO },
        exit: undefined,
        clean: true,
      });
      expect(existsSync(ran)).toBe(false);
    });

    const first = async (bytes: Buffer) => {
      const connection = await spawner.connect();
      connection.socket.write(bytes);
      return await connection.outcome;
    };
    const head = (kind: number, length: number) => {
      const bytes = Buffer.alloc(8);
      bytes.writeUInt32BE(kind, 0);
      bytes.writeUInt32BE(length, 4);
      return bytes;
    };
    test.each<[string, Buffer]>([
      ['an unknown kind', head(99, 64)],
      ['an unknown kind with a body', Buffer.concat([head(99, 64), Buffer.alloc(64)])],
      ['a stop first', head(2, 0)],
      ['a length over the limit, before its bytes', head(1, 4_194_305)],
      ['the longest length there is', head(1, 0xffff_ffff)],
      ['an end with the wrong length', head(3, 8)],
      ['an end of root', Buffer.concat([head(3, 4), Buffer.alloc(4)])],
      ['an end of nobody in the range', Buffer.concat([head(3, 4), Buffer.from([0, 0, 0x4e, 0x1f])])],
    ])('%s', async (_what, bytes) => {
      const { failed, clean } = await first(bytes);
      expect({ failed, clean }).toEqual({ failed: { step: wire('STEP_PLAN'), errno: EPROTO }, clean: true });
    });

    test('silence is refused after five seconds, half a message too', async () => {
      const start = performance.now();
      const [silent, half] = await Promise.all([first(Buffer.alloc(0)), first(message(1, good()).subarray(0, 100))]);
      expect([silent.failed, half.failed]).toEqual(Array(2).fill({ step: wire('STEP_PLAN'), errno: ETIMEDOUT }));
      expect(performance.now() - start).toBeGreaterThan(4_900);
      expect(performance.now() - start).toBeLessThan(6_500);
    });

    test('a connection that closes early leaves nothing', async () => {
      const { socket, outcome } = await spawner.connect();
      socket.end(message(1, good()).subarray(0, 100));
      expect((await outcome).failed).toBeUndefined();
      await eventually('no supervisor', () => spawner.supervisors().length === 0);
      expect(existsSync(ran)).toBe(false);
    });
  });
});
