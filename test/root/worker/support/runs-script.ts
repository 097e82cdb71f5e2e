/** Under the worker's rights, in processes of its own: one scenario of spawner and runs; prints what it saw. */
import { chmodSync, lstatSync, mkdirSync, readFileSync, symlinkSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';
import type { LaunchPlan } from '../../../../worker/runs/plan.ts';
import type { OutputSink } from '../../../../worker/runs/run.ts';
import { type RunHandle, Runs } from '../../../../worker/runs/runs.ts';
import { Spawner } from '../../../../worker/runs/spawner.ts';
import { Spaces, uidOf } from '../../../../worker/spaces.ts';
import { allProcesses, type ProcessView, processesOf } from '../../../support/processes.ts';
import { eventually } from '../../../support/wait.ts';

/** Long enough for a machine that is busy with other things, ms. */
const patienceMs = 20_000;

const [scenario = '', folder = '', program = ''] = process.argv.slice(2);
const user = 917_000;
const uid = uidOf(user);

process.umask(0o077);
const workDir = join(folder, 'work');
mkdirSync(workDir);
chmodSync(workDir, 0o711);
const space = new Spaces(workDir).ensure(user);

const logged: string[] = [];
const log = pino({ level: 'trace' }, { write: (line: string) => void logged.push(line) });
const lock = join(folder, 'lock');
const makeSpawner = (name = 'spawner', native = program): Spawner =>
  new Spawner({ program: native, folder: join(folder, name), lock }, log);

const spawner = makeSpawner();
const runs = new Runs(spawner, 4, log);

const shell = (script: string, more: Partial<LaunchPlan> = {}): LaunchPlan => ({
  uid,
  program: '/bin/sh',
  space,
  directory: '',
  args: ['/bin/sh', '-c', script],
  environment: ['PATH=/usr/bin:/bin'],
  timeLimitMs: 60_000,
  outputBytesMax: 1_000_000,
  processesMax: 0,
  fileBytesMax: 0,
  addressBytesMax: 0,
  termGraceMs: 0,
  streams: 'empty',
  ...more,
});

const start = (
  plan: LaunchPlan,
  sink: OutputSink = () => true,
  signal = new AbortController().signal,
): Promise<RunHandle> => runs.start(plan, sink, signal);

/** The end as it was told, less what differs from one time to the next. */
const told = async (handle: RunHandle): Promise<unknown> => {
  const end = await handle.outcome;
  if (end.kind !== 'exit' && end.kind !== 'incomplete') return end;
  const { reason, exitCode, signal } = end.exit;
  return { kind: end.kind, reason, exitCode: exitCode ?? null, signal: signal ?? null };
};

const errorOf = async (answer: Promise<unknown>): Promise<unknown> => {
  const startedAt = performance.now();
  const error: unknown = await answer.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  const { name, code, message } = (error ?? {}) as NodeJS.ErrnoException;
  return { name, code, message, ms: Math.round(performance.now() - startedAt) };
};

/** Without killers, which have the uid as effective one only: the next spawner's look for what is left. */
const left = (): string[] =>
  processesOf(uid)
    .filter(({ uids }) => uids.every((id) => id === uid))
    .map(({ command, state }) => `${state} ${command}`);

const tools = async (count: number): Promise<ProcessView[]> =>
  eventually(
    `${count} processes of the user`,
    () => {
      const found = processesOf(uid).filter(({ uids }) => uids.every((id) => id === uid));
      return found.length >= count ? found : undefined;
    },
    patienceMs,
  );

const spawnerPid = (): number => {
  const { pid } = spawner;
  if (pid === undefined) throw new Error('there is no spawner');
  return pid;
};

const supervisor = (): number => {
  const found = allProcesses().filter(
    ({ parent, uids, state }) => parent === spawnerPid() && (uids[0] ?? 0) >= 0x4000_0000 && state !== 'Z',
  );
  if (found.length !== 1 || found[0] === undefined) throw new Error(`${found.length} supervisors`);
  return found[0].pid;
};

const native = (): string[] =>
  allProcesses()
    .filter(({ command }) => command.startsWith(`${program} spawner`))
    .map(({ command }) => command);

const watch = (promise: Promise<unknown>): (() => boolean) => {
  let settled = false;
  void promise.then(() => {
    settled = true;
  });
  return () => settled;
};

/** Starts a run of a hundred processes that ignore what can be ignored. */
const crowd = async (): Promise<RunHandle> => {
  const handle = await start(
    shell('trap "" TERM HUP INT; for i in $(seq 100); do (exec setsid sleep 1000) & done; exec sleep 1000'),
  );
  await tools(101);
  return handle;
};

const fullReady = async (): Promise<void> => {
  await eventually(
    'a spawner that is ready',
    () =>
      spawner.ready().then(
        () => true,
        () => false,
      ),
    patienceMs,
  );
};

const scenarios: Readonly<Record<string, () => Promise<unknown>>> = {
  async life() {
    await spawner.start();
    const { mode, uid: owner } = lstatSync(join(folder, 'spawner'));
    const running = native().length;
    const output: string[] = [];
    const handle = await start(shell('id -u; echo err >&2; exit 3'), (stream, data) => {
      output.push(`${stream}:${data.toString()}`);
      return true;
    });
    const end = await told(handle);
    await handle.gone;
    await runs.idle();
    await spawner.stop();
    return {
      folder: `${mode.toString(8)} ${owner}`,
      running,
      end,
      output: output.toSorted(),
      left: left(),
      native: native(),
      pid: spawner.pid ?? null,
    };
  },

  async stopEndsRuns() {
    await spawner.start();
    const handle = await crowd();
    runs.stop();
    await spawner.stop();
    const after = left();
    return { end: await told(handle), after, native: native() };
  },

  async restarted() {
    await spawner.start();
    const before = spawnerPid();
    const handle = await crowd();
    process.kill(before, 'SIGKILL');
    const end = await told(handle);
    await handle.gone;
    const atGone = left();
    // The end of its runs may be heard of before its own.
    await eventually('its death is noticed', () => logged.some((line) => line.includes('the spawner is gone')));
    await fullReady();
    const again = await start(shell('exit 0'));
    return {
      end,
      atGone,
      another: spawnerPid() !== before,
      again: await told(again),
      said: logged.some((line) => line.includes('the spawner is gone')),
    };
  },

  async lost() {
    await spawner.start();
    const handle = await crowd();
    const gone = watch(handle.gone);
    // While the spawner stands still nobody ends what its dead supervisor left.
    const [spawnerIs, supervisorIs] = [spawnerPid(), supervisor()];
    process.kill(spawnerIs, 'SIGSTOP');
    process.kill(supervisorIs, 'SIGKILL');
    const end = await told(handle);
    await delay(300);
    const meanwhile = { gone: gone(), left: left().length };
    process.kill(spawnerIs, 'SIGCONT');
    await handle.gone;
    const atGone = left();
    await runs.idle();
    const again = await start(shell('exit 0'));
    return { end, meanwhile, atGone, again: await told(again), sameSpawner: spawnerPid() === spawnerIs };
  },

  async stalled() {
    await spawner.start();
    const size = 300_000_000;
    let taken = 0;
    let most = 0;
    const state: { resume?: () => void; stalled?: boolean } = {};
    const plan = shell(`exec head -c ${size} /dev/zero`, { outputBytesMax: size });
    const handle = await start(plan, (_stream, data, resume) => {
      taken += data.length;
      if (state.stalled === false) return true;
      state.stalled = true;
      state.resume = resume;
      return false;
    });
    await eventually('the stall', () => state.stalled, patienceMs);
    const cpu = (pid: number): string => readFileSync(`/proc/${pid}/stat`, 'latin1').split(' ').slice(13, 15).join(' ');
    const [tool] = await tools(1);
    if (tool === undefined) throw new Error('no tool');
    // Asleep, and no longer working: it waits for room.
    const sleeps = async (): Promise<boolean> => {
      const before = cpu(tool.pid);
      await delay(200);
      const now = processesOf(uid)[0];
      return now?.state === 'S' && cpu(tool.pid) === before;
    };
    await eventually('a tool that sleeps', sleeps, patienceMs);
    const stalledAt = taken;
    const memory = process.memoryUsage.rss();
    state.stalled = false;
    const sampled = setInterval(() => {
      most = Math.max(most, process.memoryUsage.rss());
    }, 5);
    state.resume?.();
    const end = await told(handle);
    clearInterval(sampled);
    await handle.gone;
    return { stalledAt, end, whole: taken === size, grownMiB: Math.round((most - memory) / 1_048_576) };
  },

  async aborted() {
    await spawner.start();
    const stop = new AbortController();
    const handle = await start(
      shell('(exec setsid sleep 1000) & trap "" TERM; sleep 1000; sleep 1000'),
      () => true,
      stop.signal,
    );
    const count = (await tools(3)).length;
    stop.abort('cancelled');
    const end = await told(handle);
    await handle.gone;
    const atGone = left();
    const never = await errorOf(start(shell('sleep 1000'), () => true, AbortSignal.abort('cancelled')));
    return { count, end, atGone, never, after: left() };
  },

  async timeLimit() {
    await spawner.start();
    const startedAt = performance.now();
    const handle = await start(shell('trap "" TERM; (exec setsid sleep 1000) & sleep 1000', { timeLimitMs: 4_000 }));
    const count = (await tools(2)).length;
    const end = await told(handle);
    const ms = performance.now() - startedAt;
    await handle.gone;
    return { count, end, ms: Math.round(ms), atGone: left() };
  },

  async unreached() {
    await spawner.start();
    unlinkSync(spawner.socketPath);
    const handle = await start(shell('exit 0'));
    const end = await told(handle);
    await handle.gone;
    await runs.idle();
    return { end, full: runs.full };
  },

  async neverStarted() {
    return { ready: await errorOf(spawner.ready()), start: await errorOf(start(shell('exit 0'))) };
  },

  async missingProgram() {
    const other = makeSpawner('other', '/nonexistent/native');
    const started = await errorOf(other.start());
    const ready = await errorOf(other.ready());
    await other.stop();
    return { started, ready };
  },

  async locked() {
    await spawner.start();
    const other = makeSpawner('other');
    const refused = await errorOf(other.start());
    await other.stop();
    const handle = await start(shell('exit 0'));
    return { refused, first: await told(handle) };
  },

  async handedOver() {
    await spawner.start();
    const other = makeSpawner('other');
    const started = other.start();
    const early = watch(started);
    // It is there and waits for the lock.
    await eventually('two spawners', () => native().length === 2, patienceMs);
    await delay(200);
    const before = early();
    await spawner.stop();
    await started;
    const handle = await new Runs(other, 1, log).start(shell('exit 0'), () => true, new AbortController().signal);
    return { before, after: await told(handle) };
  },

  async folders() {
    const elsewhere = join(folder, 'elsewhere');
    mkdirSync(elsewhere, { mode: 0o755 });
    symlinkSync(elsewhere, join(folder, 'a-link'));
    const link = await errorOf(makeSpawner('a-link').start());
    const foreign = await errorOf(makeSpawner('foreign').start());
    const before = lstatSync(join(folder, 'foreign'));
    mkdirSync(join(folder, 'open'), { mode: 0o755 });
    chmodSync(join(folder, 'open'), 0o755);
    const open = makeSpawner('open');
    await open.start();
    const { mode } = lstatSync(join(folder, 'open'));
    const socket = lstatSync(open.socketPath);
    return {
      link,
      foreign,
      foreignOwner: before.uid,
      open: mode.toString(8),
      socket: `${socket.mode.toString(8)} ${socket.uid}`,
      native: native().length,
    };
  },

  async failedExec() {
    await spawner.start();
    const ends: unknown[] = [];
    for (const plan of [
      shell('', { program: '/nonexistent/tool' }),
      shell('exit 0', { directory: 'nowhere' }),
      shell('exit 0', { space: `${space}-not` }),
    ]) {
      const handle = await start(plan);
      ends.push(await told(handle));
      await handle.gone;
    }
    return { ends };
  },
};

const step = scenarios[scenario];
if (!step) throw new Error('no such scenario');
process.stdout.write(JSON.stringify(await step()));
process.exit(0);
