/** Under the worker's rights, in processes of its own: one scenario of the pool of fs helpers; prints what it saw. */
import { chmodSync, mkdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import type { FsCall } from '../../../../helper/contract/fs.ts';
import { HelperPool } from '../../../../worker/helpers/helper-pool.ts';
import { helperPlan } from '../../../../worker/helpers/program.ts';
import type { LaunchPlan } from '../../../../worker/runs/plan.ts';
import { Runs } from '../../../../worker/runs/runs.ts';
import { Spawner } from '../../../../worker/runs/spawner.ts';
import { Spaces, uidOf } from '../../../../worker/spaces.ts';
import { allProcesses, type ProcessView, processesOf } from '../../../support/processes.ts';
import { eventually } from '../../../support/wait.ts';

const patienceMs = 20_000;
const [scenario = '', folder = '', program = ''] = process.argv.slice(2);
const standIn = fileURLToPath(new URL('../../../support/helper-stand-in.ts', import.meta.url));

process.umask(0o077);
const workDir = join(folder, 'work');
mkdirSync(workDir);
chmodSync(workDir, 0o711);
const spaces = new Spaces(workDir);
const users = [917_100, 917_101, 917_102] as const;
const [user, second, third] = users;
const uid = uidOf(user);
for (const each of users) spaces.ensure(each);

const log = pino({ level: 'silent' });
const spawner = new Spawner({ program, folder: join(folder, 'spawner'), lock: join(folder, 'lock') }, log);
const limits = { processesMax: 128, fileBytesMax: 1 << 30 };
const plan = (mood = '') => {
  const real = helperPlan(limits);
  return { ...real, args: [...real.args.slice(0, -1), standIn, ...(mood === '' ? [] : [mood])] };
};
const makePool = (more: Partial<ConstructorParameters<typeof HelperPool>[1]> = {}): HelperPool =>
  new HelperPool(
    spawner,
    { plan: plan(), standBy: 1, max: 4, idleMs: 60_000, spaceOf: (of) => spaces.pathOf(of), ...more },
    log,
  );

const signal = new AbortController().signal;
const list = (path: string): FsCall => ({ verb: 'list', path, entriesMax: 1 });
const change = (path: string): FsCall => ({ verb: 'write', path, content: 'x' });

interface Told {
  readonly pid?: number;
  readonly ids?: number;
  readonly code?: string;
  readonly ms: number;
}

/** What a call came to, and how long it took. */
const told = async (
  pool: HelperPool,
  of: number,
  call: FsCall,
  deadlineMs = patienceMs,
  until = signal,
): Promise<Told> => {
  const startedAt = performance.now();
  const answer = await pool.call(of, call, { deadlineMs, signal: until }).then(
    (result) => result as object,
    (error: unknown) => ({ code: (error as { code?: string }).code ?? String(error) }),
  );
  return { ...answer, ms: Math.round(performance.now() - startedAt) };
};

const helpers = (): ProcessView[] =>
  allProcesses().filter(
    ({ command, parent, state }) =>
      command.includes(standIn) &&
      parent > 0 &&
      state !== 'Z' &&
      !command.startsWith('unshare') &&
      command.split(' ').includes('--disable-sigusr1'),
  );
const isReady = (pid: number): boolean => {
  try {
    return readlinkSync(`/proc/${pid}/cwd`) === '/proc';
  } catch {
    return false;
  }
};
/** Those that stand by, and have said that they are ready. */
const standing = (): ProcessView[] => helpers().filter(({ pid, uids }) => uids.every((id) => id === 0) && isReady(pid));
/** For a call whose time is its own, and not that of a start. */
const oneStandsBy = () => eventually('one stands by', () => standing().length >= 1, patienceMs);
/** A user's own: what the spawner ends the left-overs of a dead supervisor with has that uid as its effective one only. */
const of = (id: number): ProcessView[] =>
  processesOf(id).filter(({ state, uids }) => state !== 'Z' && uids.every((each) => each === id));
/** Calls that the user's helpers were asked, by what they wrote down as that user: read by one of that user's runs. */
const shell = async (script: string): Promise<string> => {
  const run: LaunchPlan = {
    uid,
    program: '/bin/sh',
    space: spaces.pathOf(user),
    directory: '',
    args: ['/bin/sh', '-c', script],
    environment: ['PATH=/usr/bin:/bin'],
    timeLimitMs: 20_000,
    outputBytesMax: 100_000,
    processesMax: 0,
    fileBytesMax: 0,
    addressBytesMax: 0,
    termGraceMs: 0,
    streams: 'empty',
  };
  let text = '';
  const handle = await new Runs(spawner, 1, log).start(
    run,
    (_stream, data) => {
      text += data.toString();
      return true;
    },
    signal,
  );
  await handle.gone;
  return text;
};
const asked = async (path: string): Promise<number> =>
  (await shell('cat ../calls')).split('\n').filter((line) => line.endsWith(` ${path}`)).length;

const supervisorOf = (pid: number): number => allProcesses().find((found) => found.pid === pid)?.parent ?? 0;
const kill = (pid: number): void => void process.kill(pid, 'SIGKILL');

const scenarios: Readonly<Record<string, () => Promise<unknown>>> = {
  async life() {
    const pool = makePool({ standBy: 2, idleMs: 1_500 });
    await spawner.start();
    pool.start();
    await eventually('two stand by', () => standing().length === 2, patienceMs);
    const before = standing().map(({ pid }) => pid);
    const first = await told(pool, user, list('a'));
    const seen = of(uid).map(({ uids }) => uids);
    const again = await told(pool, user, list('b'));
    const status = readFileSync(`/proc/${first.pid}/status`, 'utf8');
    await eventually('two stand by again', () => standing().length === 2, patienceMs);
    await eventually('the idle one is gone', () => of(uid).length === 0, patienceMs);
    const afterwards = await told(pool, user, list('c'));
    await pool.stop();
    return {
      fromStandBy: before.includes(first.pid ?? 0),
      ids: first.ids,
      seen,
      same: first.pid === again.pid,
      capabilities: /^CapEff:\t(\w+)$/m.exec(status)?.[1],
      other: afterwards.pid !== first.pid,
      left: helpers().length,
      afterStop: (await told(pool, user, list('d'))).code,
    };
  },

  async lanes() {
    const pool = makePool();
    await spawner.start();
    const changed = await told(pool, user, change('warm'));
    await told(pool, user, list('warm'));
    const look = await told(pool, user, { verb: 'repository', project: 'warm', worktree: null });
    const stuck = told(pool, user, change('hang'), 6_000);
    const read = await told(pool, user, list('quick'));
    const [one, two] = await Promise.all([told(pool, user, list('wait-a-bit')), told(pool, user, list('next'))]);
    const seen = of(uid).length;
    return {
      stuck: await stuck,
      read: read.ms < 5_000,
      inOrder: two.ms >= 250 && one.pid === two.pid,
      looksWithChanges: changed.pid !== undefined && look.pid === changed.pid,
      helpers: seen,
    };
  },

  async reads() {
    const pool = makePool();
    await spawner.start();
    pool.start();
    const ways = [
      'die',
      'garbage',
      'not-utf8',
      'too-long',
      'empty',
      'too-many',
      'wrong-id',
      'more-fields',
      'unknown-code',
    ];
    const once: Record<string, unknown> = {};
    for (const way of ways) {
      const { pid, code, ms } = await told(pool, user, list(`once-${way}`));
      const asks = await asked(`once-${way}`);
      await eventually('the other one is gone', () => of(uid).length === 1, patienceMs);
      // What is no reply is not waited for until the time of a call is over.
      once[way] = [code ?? typeof pid, asks, of(uid).length, ms < patienceMs / 2];
    }
    const always = { code: (await told(pool, user, list('die'))).code, asked: await asked('die') };
    await oneStandsBy();
    const hangs = await told(pool, user, list('once-hang'), 8_000);
    await oneStandsBy();
    const stuck = await told(pool, user, list('hang'), 4_000);
    const look = await told(pool, user, { verb: 'repository', project: 'once-die', worktree: null });
    const refused = await told(pool, user, list('refuse'));
    const kept = await told(pool, user, list('a'));
    const twice = await told(pool, user, list('says-twice'));
    const isGone = () => twice.pid !== undefined && of(uid).every(({ pid }) => pid !== twice.pid);
    await eventually('the talkative one is gone', isGone, patienceMs);
    return {
      once,
      always,
      hangs: [typeof hangs.pid, hangs.ms >= 3_900 && hangs.ms < 8_000],
      stuck: [stuck.code, stuck.ms >= 3_900 && stuck.ms < 8_000, await asked('hang')],
      // Two for the list before, two for this.
      look: [typeof look.pid, await asked('once-die')],
      refused: refused.code,
      kept: typeof kept.pid,
      twice: typeof twice.pid,
    };
  },

  async changes() {
    const pool = makePool();
    await spawner.start();
    pool.start();
    const seen: Record<string, unknown> = {};
    for (const way of ['die', 'garbage', 'hang']) {
      await oneStandsBy();
      const { code } = await told(pool, user, change(way), 5_000);
      const left = of(uid).length;
      seen[way] = [code, left, await asked(way)];
    }
    // Killed or stopped by its user while nothing was asked of it.
    const idle = await told(pool, user, change('a'));
    await shell(`kill -KILL ${idle.pid}`);
    await eventually('it is gone', () => !of(uid).some(({ pid }) => pid === idle.pid), patienceMs);
    // Asked before the pool has heard of its end, it would be uncertain.
    const replaced = await eventually(
      'another one',
      async () => {
        const answer = await told(pool, user, change('b'));
        return answer.pid === undefined ? undefined : answer;
      },
      patienceMs,
    );
    await shell(`kill -STOP ${replaced.pid}`);
    const stopped = await told(pool, user, change('c'), 5_000);
    const leftOfStopped = of(uid).length;
    const aborted = new AbortController();
    const cut = told(pool, user, change('hang'), patienceMs, aborted.signal);
    await eventually('it hangs', async () => (await asked('hang')) === 2, patienceMs);
    aborted.abort('link.lost');
    return {
      seen,
      replaced: typeof replaced.pid,
      stopped: [stopped.code, leftOfStopped],
      cut: (await cut).code,
      left: of(uid).length,
    };
  },

  async lost() {
    const pool = makePool();
    await spawner.start();
    await told(pool, user, change('warm'));
    const pid = of(uid)[0]?.pid ?? 0;
    let settled = false;
    const hanging = told(pool, user, change('hang')).finally(() => {
      settled = true;
    });
    await eventually('it hangs', async () => (await asked('hang')) === 1, patienceMs);
    // Nobody ends what the dead supervisor leaves while the spawner stands still: an answer by then would come too early.
    process.kill(spawner.pid ?? 0, 'SIGSTOP');
    kill(supervisorOf(pid));
    await delay(500);
    const early = settled;
    process.kill(spawner.pid ?? 0, 'SIGCONT');
    const { code } = await hanging;
    const left = of(uid).length;
    const again = await told(pool, user, change('a'));
    kill(spawner.pid ?? 0);
    await eventually(
      'the spawner and a helper are there again',
      async () => (await told(pool, user, list('a'))).pid,
      patienceMs,
    );
    return { early, code, left, again: typeof again.pid };
  },

  async bounds() {
    const pool = makePool({ max: 2, standBy: 0 });
    await spawner.start();
    const one = await told(pool, user, list('a'));
    const two = await told(pool, second, list('a'));
    await told(pool, user, list('a'));
    const three = await told(pool, third, list('a'));
    await eventually('one went', () => of(uidOf(second)).length === 0, patienceMs);
    const kept = (await told(pool, user, list('a'))).pid === one.pid;
    const over = new AbortController();
    const hang = (who: number) => told(pool, who, list('hang'), patienceMs, over.signal);
    const busy = [hang(user), told(pool, third, list('wait-a-bit'))];
    const waited = await told(pool, second, list('a'));
    const held = hang(second);
    const overloaded = await told(pool, third, list('b'), 700);
    over.abort();
    await Promise.all([...busy, held]);
    return { different: two.pid !== three.pid, kept, waited: typeof waited.pid, overloaded: overloaded.code };
  },

  async discarded() {
    const pool = makePool();
    await spawner.start();
    const one = await told(pool, user, list('a'));
    const two = await told(pool, user, change('a'));
    const slow = told(pool, user, list('wait-a-bit'));
    await new Promise(setImmediate); // for it to be asked
    pool.discard(user);
    await eventually('the idle one goes', () => !of(uid).some(({ pid }) => pid === two.pid), patienceMs);
    const during = await slow;
    const next = await told(pool, user, list('a'));
    return { finished: during.pid === one.pid, next: next.pid !== one.pid && typeof next.pid };
  },

  async broken() {
    const pool = makePool({ spaceOf: () => '/nowhere' });
    await spawner.start();
    const codes = [(await told(pool, user, list('a'))).code, (await told(pool, user, change('a'))).code];
    const dead = makePool({ plan: plan('dies-early') });
    const early = [(await told(dead, user, list('a'))).code, (await told(dead, user, change('a'))).code];
    const silent = makePool({ plan: plan('never-ready') });
    const late = (await told(silent, user, change('a'), 600)).code;
    return { codes, early, late };
  },

  async large() {
    const pool = makePool();
    await spawner.start();
    const content = 'ab"\n'.repeat(600_000);
    const answer = await pool.call(user, { verb: 'write', path: 'x', content }, { deadlineMs: patienceMs, signal });
    const tooLarge = await told(pool, user, { verb: 'write', path: 'x', content: content.repeat(2) });
    const same = (answer as { content: string }).content === content;
    return {
      same,
      tooLarge: /RangeError/.test(tooLarge.code ?? ''),
      next: typeof (await told(pool, user, change('a'))).pid,
    };
  },

  async real() {
    const built = fileURLToPath(new URL('../../../../dist/helper/fs/main.js', import.meta.url));
    const args = [...helperPlan(limits).args.slice(0, -1), built];
    const pool = makePool({ plan: { ...helperPlan(limits), args } });
    await spawner.start();
    pool.start();
    const written = await told(pool, user, { verb: 'write', path: 'repos/a', content: 'hello' });
    const read = await told(pool, user, { verb: 'read', path: 'repos/a', bytesMax: 100, probeBytes: 10 });
    const missing = await told(pool, user, { verb: 'read', path: 'repos/b', bytesMax: 100, probeBytes: 10 });
    return {
      written: { ...written, ms: 0 },
      read: { ...read, ms: 0 },
      missing: missing.code,
      text: await shell('cat repos/a'),
    };
  },
};

const step = scenarios[scenario];
if (!step) throw new Error('no such scenario');
process.stdout.write(JSON.stringify(await step()));
process.exit(0);
