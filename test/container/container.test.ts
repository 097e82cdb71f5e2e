import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/wait.ts';
import { Container } from './container.ts';

// The essentials, once, in a real container with the seed's rights: three capabilities, no new privileges, a
// read-only root file system, one tmpfs on /tmp, and the product as PID 1 on its default address.

const first = 210_001;
const second = 210_002;
const timeoutSec = 2;

/** CAP_CHOWN, CAP_SETGID, CAP_SETUID (linux/capability.h: 0, 6, 7). */
const threeCapabilities = '00000000000000c1';
const none = '0000000000000000';

/** Init's own arguments name this program too; the worker's first argument is it. */
const worker = /^\S+ \S*worker\/main\.js/;

let container: Container;

const statusOf = (text: string): Map<string, string> =>
  new Map(text.split('\n').map((line) => line.split(/:\s*/, 2) as [string, string]));

/** Waits until no process of the container matches, not even as a zombie. */
const gone = (pids: readonly number[]): Promise<boolean> =>
  eventually(`the end of ${pids}`, () => !container.processes().some(({ pid }) => pids.includes(pid)));

beforeAll(async () => {
  container = await Container.start({
    RUNNER_TOOLS: 'sh=/bin/sh',
    RUNNER_EXEC_TIMEOUT_SEC: String(timeoutSec),
  });
}, 60_000);

afterAll(async () => {
  await container?.remove();
});

describe('the container', () => {
  it('has the native init as PID 1, with exactly the three capabilities and no new privileges', () => {
    const status = statusOf(readFileSync(`/proc/${container.init}/status`, 'utf8'));
    expect(status.get('NSpid')?.trim().split(/\s+/).at(-1)).toBe('1');
    expect(container.process(/^workspace-runner init /)?.pid).toBe(container.init);
    for (const set of ['CapPrm', 'CapEff', 'CapBnd']) expect([set, status.get(set)]).toEqual([set, threeCapabilities]);
    for (const set of ['CapInh', 'CapAmb']) expect([set, status.get(set)]).toEqual([set, none]);
    expect(status.get('NoNewPrivs')).toBe('1');
  });

  it('answers probes on the default address', async () => {
    expect(await container.client.get('/healthz')).toMatchObject({ status: 204, text: '' });
  });

  it('has nothing of the host but what was given to it, and only volume and tmpfs to write to', () => {
    const writable = readFileSync(`/proc/${container.init}/mountinfo`, 'utf8')
      .trim()
      .split('\n')
      .map((line) => line.split(' '))
      .filter(([, , , , , options]) => options?.split(',').includes('rw'))
      .map(([, , , , where]) => where);
    expect(writable.sort()).toEqual(['/dev', '/dev/mqueue', '/dev/pts', '/dev/shm', '/proc', '/tmp', '/work']);
    for (const path of ['/x', '/etc/x', '/opt/x', '/run/x', '/usr/x', '/var/x', '/opt/workspace-runner/dist/x']) {
      const { status, stderr } = container.enter('touch', path);
      expect({ path, status, refused: stderr.includes('Read-only file system') }).toEqual({
        path,
        status: 1,
        refused: true,
      });
    }
  });

  it('writes, reads, lists, counts, deletes and resets', async () => {
    const user = 970_900;
    const steps = [
      ['files/write', { path: 'repos/f', content: 'here' }, { written: true, size: 4 }],
      ['files/read', { path: 'repos/f' }, { content: 'here' }],
      ['files/list', { path: 'repos' }, { entries: [{ name: 'f', kind: 'file', size: 4 }] }],
      ['usage', {}, { bytes: 4, files: 1, over: false }],
      ['files/delete', { path: 'repos/f' }, { deleted: true }],
      ['workspace/reset', {}, { reset: true }],
      ['usage', {}, { bytes: 0, files: 0 }],
    ] as const;
    for (const [route, fields, expected] of steps) {
      const { status, body } = await container.client.post(`/v1/${route}`, { user, ...fields });
      expect([route, status, body]).toMatchObject([route, 200, expected]);
    }
  });

  it('reaps an orphan that comes to PID 1', async () => {
    const { stdout } = container.enter('sh', '-c', 'sleep 984 >&- 2>&- & echo started');
    expect(stdout).toBe('started\n');
    const orphan = await eventually('an orphan of PID 1', () => {
      const found = container.process(/^sleep 984$/);
      return found?.parent === container.init ? found : undefined;
    });
    process.kill(orphan.pid, 'SIGKILL');
    await gone([orphan.pid]);
  });
});

describe('tools in the container', () => {
  it('git makes a repository and a commit for each of two users', async () => {
    for (const user of [first, second]) {
      const init = await container.exec(user, 'git', ['init', '-q', '-b', 'main', 'project']);
      expect(init).toMatchObject({ status: 200, body: { exitCode: 0, stderr: '' } });
      const written = await container.sh(user, `echo ${user} > project/file && chmod 600 project/file`);
      expect(written.body).toMatchObject({ exitCode: 0, stderr: '' });
      const identity = ['-c', 'user.name=A', '-c', 'user.email=a@b.example'];
      const add = await container.exec(user, 'git', ['add', '.'], { dir: 'project' });
      expect(add.body).toMatchObject({ exitCode: 0, stderr: '' });
      const commit = await container.exec(user, 'git', [...identity, 'commit', '-q', '-m', 'one'], { dir: 'project' });
      expect(commit.body).toMatchObject({ exitCode: 0, stderr: '' });
      const log = await container.exec(user, 'git', ['log', '--format=%an %s'], { dir: 'project' });
      expect(log.body).toMatchObject({ exitCode: 0, stdout: 'A one\n' });
    }
  });

  it('run as their user, without any capability and with no new privileges', async () => {
    const { body } = await container.sh(first, 'cat /proc/self/status; id -G');
    const status = statusOf(body.stdout ?? '');
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapAmb']) expect([set, status.get(set)]).toEqual([set, none]);
    expect(status.get('NoNewPrivs')).toBe('1');
    const uid = String(20_000 + first);
    expect(status.get('Uid')).toBe([uid, uid, uid, uid].join('\t'));
    expect(body.stdout?.trim().split('\n').at(-1)).toBe(uid);
  });

  it('reach nothing of another user’s', async () => {
    const other = `/work/u${20_000 + second}`;
    const own = await container.sh(second, `cat ${other}/home/project/file`);
    expect(own.body).toMatchObject({ exitCode: 0, stdout: `${second}\n` });
    const tries = [
      `cat ${other}/home/project/file`,
      `ls ${other}`,
      'ls /work',
      `touch ${other}/home/x`,
      'ls /work/.runner',
    ];
    for (const script of tries) {
      const { body } = await container.sh(first, script);
      expect({ script, stdout: body.stdout, failed: body.exitCode !== 0 }).toEqual({
        script,
        stdout: '',
        failed: true,
      });
      expect(body.stderr).toContain('Permission denied');
    }
  });

  it('write to their home and /tmp and nowhere else', async () => {
    for (const path of ['$HOME/x', '/tmp/x-$$'])
      expect((await container.sh(first, `echo 1 > ${path} && rm ${path}`)).body).toMatchObject({ exitCode: 0 });
    for (const path of [
      '/x',
      '/etc/x',
      '/opt/x',
      '/run/x',
      '/usr/x',
      '/var/x',
      '/work/x',
      '/dev/x',
      '/proc/sys/kernel/x',
    ]) {
      const { body } = await container.sh(first, `touch ${path}`);
      expect({ path, failed: body.exitCode !== 0 }).toEqual({ path, failed: true });
    }
  });

  it('end at the time limit with all that they started, double forks in sessions of their own included', async () => {
    const script = '(setsid sh -c "sleep 981 & sleep 982 & wait" &) ; exec sleep 983';
    const answer = container.sh(first, script);
    const tree = await eventually('all three', () => {
      const found = container.processes().filter(({ command }) => /^sleep 98[123]$/.test(command));
      return found.length === 3 ? found : undefined;
    });
    expect(new Set(tree.map(({ uids }) => uids[0]))).toEqual(new Set([20_000 + first]));
    expect(await answer).toMatchObject({ status: 200, body: { timedOut: true, exitCode: -1, signal: 'SIGKILL' } });
    // At the answer, not some time after it.
    expect(container.processes().filter(({ command }) => /sleep 98/.test(command))).toEqual([]);
  });
});

describe('a killed worker', () => {
  it('is replaced; what was under way is uncertain, ends, and leaves no zombie', async () => {
    const before = container.process(worker);
    expect(before?.parent).toBe(container.init);
    const answer = container.exec(first, 'sh', ['-c', 'setsid sleep 985 & exec sleep 986']);
    const tree = await eventually('the run', () => {
      const found = container.processes().filter(({ command }) => /^sleep 98[56]$/.test(command));
      return found.length === 2 ? found : undefined;
    });
    process.kill(before?.pid ?? -1, 'SIGKILL');
    expect(await answer).toMatchObject({ status: 502, body: { error: 'uncertain' } });
    await gone([before?.pid ?? -1, ...tree.map(({ pid }) => pid)]);
    await container.healthy();
    const after = container.process(worker);
    expect(after?.pid).not.toBe(before?.pid);
    const again = await container.exec(first, 'git', ['status', '--short'], { dir: 'project' });
    expect(again.body).toMatchObject({ exitCode: 0, stdout: '' });
    // The supervisor of the last run may be on its way out.
    await eventually('no zombie', () => container.processes().every(({ state }) => state !== 'Z'));
  });
});

describe('the end', () => {
  it('comes within 8 seconds of SIGTERM to PID 1, with status 0 and nothing left', async () => {
    const answer = container.exec(second, 'sh', ['-c', 'setsid sleep 987 & exec sleep 988']).catch(() => undefined);
    await eventually('the run', () => container.process(/^sleep 987$/) && container.process(/^sleep 988$/));
    const all = container.processes().map(({ pid }) => pid);
    const started = performance.now();
    process.kill(container.init, 'SIGTERM');
    expect(await container.exited).toBe(0);
    expect(performance.now() - started).toBeLessThan(8_000);
    await answer;
    for (const pid of all) expect(() => process.kill(pid, 0)).toThrow('ESRCH');
  });

  it('leaves an audit on standard output, logs on standard error, and neither in the other', () => {
    const audit = container.stdout.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(audit.length).toBeGreaterThan(20);
    for (const line of audit) expect(line).toMatchObject({ action: expect.any(String), status: expect.any(String) });
    for (const action of ['worker.started', 'exec', 'link.lost'])
      expect(audit.map((line) => line['action'])).toContain(action);
    expect(audit.some(({ status }) => status === 'timeout')).toBe(true);
    expect(audit.some(({ status }) => status === 'uncertain')).toBe(true);
    expect(container.stderr.length).toBeGreaterThan(0);
    for (const line of container.stderr) expect(line).not.toContain('"action"');
  });
});
