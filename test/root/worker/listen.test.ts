import {
  chmodSync,
  chownSync,
  copyFileSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { asUser, nativeProgram, ownFolder, Script, workerCommand } from './support/as-worker.ts';

/** Nobody else's in other tests: what a service ends of its gateway's uid is not this test's. */
const gatewayUid = 19_970;
const gatewayGid = 19_998;

let folder: ReturnType<typeof ownFolder>;
let place: string;
let socketPath: string;
const scripts: Script[] = [];

beforeEach(() => {
  folder = ownFolder();
  place = join(folder.path, 'run');
  socketPath = join(place, 'worker.sock');
});

afterEach(async () => {
  await Promise.all(scripts.splice(0).map((script) => script.end()));
  folder.remove();
});

const begin = (command: readonly string[]): Script => {
  const script = new Script(command);
  scripts.push(script);
  return script;
};

interface Wish {
  readonly path?: string;
  readonly native?: string;
  readonly before?: readonly string[];
}

const listener = ({ path = socketPath, native = nativeProgram, before = [] }: Wish = {}): Script => {
  const options = JSON.stringify({ socketPath: path, gatewayUid, gatewayGid, native });
  return begin([...before, ...workerCommand('listen-script', [options])]);
};

const listening = async (wish: Wish = {}): Promise<Script> => {
  const script = listener(wish);
  expect(await script.next('listening', 'refused')).toMatchObject({ said: 'listening' });
  return script;
};

/** The sentence that a start is refused with. */
const refused = async (wish: Wish = {}): Promise<string> => {
  const { said, name, message } = await listener(wish).next('refused', 'listening');
  expect({ said, name, message }).toStrictEqual({
    said: 'refused',
    name: 'SettingsError',
    message: expect.any(String),
  });
  return String(message);
};

const connectScript = fileURLToPath(new URL('./support/connect-script.ts', import.meta.url));

const connect = (uid: number, gid: number, early: string): Script =>
  begin(asUser(uid, gid, [process.execPath, connectScript, socketPath, early]));

const view = (path: string): string => {
  const { mode, uid, gid } = lstatSync(path);
  return `${mode.toString(8)} ${uid}:${gid}`;
};

/** Everything about a folder that a start could change. */
const state = (path: string): unknown => {
  const { mode, uid, gid, ino, mtimeMs } = lstatSync(path);
  return { mode, uid, gid, ino, mtimeMs, names: lstatSync(path).isDirectory() ? readdirSync(path) : [] };
};

describe('the folder of the socket', () => {
  it('is made: root’s and the gateway’s group’s, 0750, and the socket 0660 likewise', async () => {
    await listening();
    expect(view(place)).toBe(`40750 0:${gatewayGid}`);
    expect(view(socketPath)).toBe(`140660 0:${gatewayGid}`);
    expect(readdirSync(place)).toStrictEqual(['worker.sock']);
  });

  const tightened: readonly (readonly [string, () => void])[] = [
    ['empty', () => undefined],
    ['with the worker’s own names in it', () => mkdirSync(join(place, 'spawner'), { mode: 0o700 })],
  ];
  it.each(tightened)('is tightened when it is root’s and %s', async (_name, fill) => {
    mkdirSync(place);
    fill();
    chmodSync(place, 0o777);
    chownSync(place, 0, 4321);
    await listening();
    expect(view(place)).toBe(`40750 0:${gatewayGid}`);
  });

  it('may hold other things when it is as it should be', async () => {
    mkdirSync(place);
    writeFileSync(join(place, 'other'), 'x');
    chownSync(place, 0, gatewayGid);
    chmodSync(place, 0o750);
    await listening();
    expect(readFileSync(join(place, 'other'), 'utf8')).toBe('x');
  });

  const unsafe: readonly (readonly [string, RegExp, () => void])[] = [
    [
      'is too open and holds other things',
      /folder of its own/,
      () => {
        mkdirSync(place);
        writeFileSync(join(place, 'other'), 'x');
        chmodSync(place, 0o755);
      },
    ],
    [
      'has another group and holds other things',
      /folder of its own/,
      () => {
        mkdirSync(place);
        writeFileSync(join(place, 'other'), 'x');
        chmodSync(place, 0o750);
      },
    ],
    [
      'is another’s',
      /root’s/,
      () => {
        mkdirSync(place);
        chmodSync(place, 0o750);
        chownSync(place, gatewayUid, gatewayGid);
      },
    ],
    [
      'is a link',
      /not behind a link/,
      () => {
        mkdirSync(join(folder.path, 'elsewhere'));
        symlinkSync(join(folder.path, 'elsewhere'), place);
      },
    ],
    ['is a file', /RUNNER_SOCKET/, () => writeFileSync(place, 'x')],
    ['is a link to nothing', /RUNNER_SOCKET/, () => symlinkSync('/nonexistent/x', place)],
    [
      'is for everybody to write in, as /tmp is, even when nothing is in it',
      /RUNNER_SOCKET/,
      () => {
        mkdirSync(place);
        chmodSync(place, 0o1777);
      },
    ],
  ];
  it.each(unsafe)('that %s stops the start and stays as it is', async (_name, sentence, make) => {
    make();
    const before = state(place);
    expect(await refused()).toMatch(sentence);
    expect(state(place)).toStrictEqual(before);
  });

  it('is never /run itself, even when nothing is in it', async () => {
    // In a mount namespace of its own: an empty one in its place, which only this script sees.
    const mount = 'mount -t tmpfs -o mode=0755 tmpfs /run && exec "$@"';
    const script = listener({ path: '/run/worker.sock', before: ['unshare', '--mount', 'sh', '-c', mount, 'sh'] });
    const outcome = await script.next('refused', 'listening');
    expect(outcome).toMatchObject({ said: 'refused', name: 'SettingsError', folder: '755 0:0' });
  });
});

describe('the place of the socket', () => {
  it('is taken over from a dead worker', async () => {
    const first = await listening();
    await first.end();
    expect(view(socketPath), 'the stale socket is there').toMatch(/^140660 /);
    await listening();
    const gateway = connect(gatewayUid, gatewayGid, 'hello');
    expect((await gateway.next('heard'))['text']).toBe('echo hello');
  });

  it('is not taken from a worker that lives', async () => {
    const first = await listening();
    const { ino } = lstatSync(socketPath);
    expect(await refused()).toMatch(/in use/);
    expect(lstatSync(socketPath).ino).toBe(ino);
    const gateway = connect(gatewayUid, gatewayGid, 'hello');
    expect((await gateway.next('heard'))['text']).toBe('echo hello');
    expect(
      first.lines.filter(({ said }) => said === 'accepted'),
      'the probe is not the gateway',
    ).toHaveLength(1);
  });

  it('is not taken from a file that is no socket', async () => {
    mkdirSync(place);
    writeFileSync(socketPath, 'precious');
    expect(await refused()).toMatch(/RUNNER_SOCKET/);
    expect(readFileSync(socketPath, 'utf8')).toBe('precious');
  });
});

/** Cut off: it came as far as the socket, and what it said was thrown away unread. */
const expectCutOff = async (peer: Script): Promise<void> => {
  await peer.next('connected');
  // A Unix socket that is closed with bytes in it unread says so to its peer (unix(7)).
  expect(await peer.next('failed')).toMatchObject({ code: expect.stringMatching(/^(ECONNRESET|EPIPE)$/) });
  await peer.next('over');
  expect(peer.lines.some(({ said }) => said === 'heard')).toBe(false);
};

const accepted = (worker: Script): number => worker.lines.filter(({ said }) => said === 'accepted').length;

describe('whoever connects', () => {
  it('with the gateway’s uid is let in, and nothing it said early is lost', async () => {
    const worker = await listening();
    const gateway = connect(gatewayUid, gatewayGid, 'early');
    expect(await worker.next('data')).toMatchObject({ link: 1, text: 'early' });
    expect((await gateway.next('heard'))['text']).toBe('echo early');
    gateway.process.stdin?.write('later');
    expect((await gateway.next('heard'))['text'], 'and the socket still works as it should').toBe('echo later');
  });

  const strangers: readonly (readonly [string, number, number])[] = [
    ['root', 0, 0],
    ['a user with the gateway’s group', 20_001, gatewayGid],
    ['a far user with the gateway’s group', 937_500, gatewayGid],
    ['the gateway’s neighbour', gatewayUid - 1, gatewayGid],
    ['somebody whose uid is the gateway’s gid', gatewayGid, gatewayGid],
  ];
  it.each(strangers)('as %s is cut off before a byte of it was read', async (_name, uid, gid) => {
    const worker = await listening();
    await expectCutOff(connect(uid, gid, 'planted'));
    const gateway = connect(gatewayUid, gatewayGid, 'hello');
    expect((await gateway.next('heard'))['text'], 'the gateway is let in after it').toBe('echo hello');
    expect(accepted(worker)).toBe(1);
    expect(JSON.stringify(worker.lines)).not.toContain('planted');
    expect(worker.lines.filter(({ said }) => said === 'log')).toHaveLength(1);
  });

  it('as a user does not even get to the socket', async () => {
    await listening();
    const user = connect(20_001, 20_001, 'x');
    expect(await user.next('failed')).toMatchObject({ code: 'EACCES', call: 'connect' });
  });

  it('as a second gateway is cut off while the first one lives, and let in after it', async () => {
    const worker = await listening();
    const first = connect(gatewayUid, gatewayGid, 'first');
    await worker.next('data');
    await expectCutOff(connect(gatewayUid, gatewayGid, 'second'));
    first.process.stdin?.write('still here');
    expect(await worker.next('data')).toMatchObject({ link: 1, text: 'still here' });
    await first.end();
    await worker.next('closed');
    connect(gatewayUid, gatewayGid, 'third');
    expect(await worker.next('data')).toMatchObject({ link: 2, text: 'third' });
    expect(accepted(worker)).toBe(2);
  });

  it('as one of several gateways at the same moment: one is let in, the others are cut off', async () => {
    const worker = await listening();
    const gateways = [1, 2, 3].map((number) => connect(gatewayUid, gatewayGid, `gateway ${number}`));
    await worker.next('data');
    const over = await Promise.all(gateways.map(async (gateway) => (await gateway.next('over', 'heard')).said));
    expect(over.toSorted()).toStrictEqual(['heard', 'over', 'over']);
    expect(accepted(worker)).toBe(1);
  });

  it('as many strangers at once does not keep the gateway out', async () => {
    const worker = await listening();
    const strangersAtOnce = Array.from({ length: 6 }, () => connect(20_001, gatewayGid, 'planted'));
    await Promise.all(strangersAtOnce.map((stranger) => stranger.next('over')));
    const gateway = connect(gatewayUid, gatewayGid, 'hello');
    expect((await gateway.next('heard'))['text']).toBe('echo hello');
    expect(accepted(worker)).toBe(1);
  });
});

describe('a check of the peer that does not work', () => {
  const program = (text: string): string => {
    const path = join(folder.path, 'peercred');
    writeFileSync(path, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
    return path;
  };

  it('lets somebody in only because it says so: the stand-in would', async () => {
    const worker = await listening({ native: program(`echo ${gatewayUid}`) });
    connect(20_001, gatewayGid, 'let in');
    expect(await worker.next('data')).toMatchObject({ text: 'let in' });
  });

  const broken: readonly (readonly [string, () => string])[] = [
    ['is not there', () => '/nonexistent/native'],
    [
      'cannot be executed',
      () => {
        const path = join(folder.path, 'copy');
        copyFileSync(nativeProgram, path);
        chmodSync(path, 0o600);
        return path;
      },
    ],
    ['fails', () => program(`echo ${gatewayUid}; exit 1`)],
    ['says nothing', () => program('exit 0')],
    ['says half a line', () => program(`printf ${gatewayUid}`)],
    ['says two lines', () => program(`echo ${gatewayUid}; echo ${gatewayUid}`)],
    ['says something else', () => program(`echo uid=${gatewayUid}`)],
    ['is killed', () => program(`echo ${gatewayUid}; kill -9 $$`)],
    ['hangs', () => program(`echo ${gatewayUid}; exec sleep 60`)],
  ];
  it.each(broken)('because it %s lets nobody in', async (_name, native) => {
    const worker = await listening({ native: native() });
    await expectCutOff(connect(gatewayUid, gatewayGid, 'planted'));
    expect(accepted(worker)).toBe(0);
  });
});

describe('a socket of another program', () => {
  it('in the same place is not removed while it listens', async () => {
    mkdirSync(place);
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(socketPath, resolve));
    try {
      expect(await refused()).toMatch(/in use/);
      expect(lstatSync(socketPath).isSocket()).toBe(true);
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  });
});
