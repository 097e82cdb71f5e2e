import { constants } from 'node:os';
import { describe, expect, it } from 'vitest';
import { launchSteps } from '../../../helper/contract.ts';
import { Refusal } from '../../../protocol/errors.ts';
import { exec } from '../../../protocol/operations/exec.ts';
import type { Params, Result } from '../../../protocol/operations/index.ts';
import { readConfig } from '../../../worker/config.ts';
import type { AuditFacts } from '../../../worker/handlers.ts';
import { UserLocks } from '../../../worker/locks.ts';
import { execHandler } from '../../../worker/operations/exec.ts';
import { Outputs } from '../../../worker/outputs.ts';
import type { RunExit } from '../../../worker/runs/messages.ts';
import type { LaunchPlan } from '../../../worker/runs/plan.ts';
import type { OutputSink, RunEnd } from '../../../worker/runs/run.ts';
import { type RunHandle, Runs } from '../../../worker/runs/runs.ts';
import { Spawner } from '../../../worker/runs/spawner.ts';
import { Spaces } from '../../../worker/spaces.ts';
import { collectingLog } from './support/collect.ts';
import { StandInQuota } from './support/quota.ts';
import { handleOf } from './support/run-handle.ts';

type End = RunEnd | { readonly kind: 'incomplete'; readonly exit: RunExit };

const exit: RunExit = {
  reason: 'exited',
  exitCode: 0,
  signal: undefined,
  stdoutCut: false,
  stderrCut: false,
  maxRssBytes: 1,
  cpuMicros: 1,
  durationMicros: 12_600,
};

/** Takes plans and ends each run as the test says. */
class StandInRuns extends Runs {
  readonly plans: LaunchPlan[] = [];
  readonly gone = Promise.withResolvers<RunEnd>();
  end: End = { kind: 'exit', exit };
  output: readonly (readonly ['stdout' | 'stderr', string])[] = [];
  refusal: Refusal | undefined;

  constructor() {
    const { log } = collectingLog();
    super(new Spawner({ program: '/nowhere', folder: '/nowhere', lock: '/nowhere' }, log), 1, log);
  }

  override async start(plan: LaunchPlan, sink: OutputSink): Promise<RunHandle> {
    if (this.refusal) throw this.refusal;
    this.plans.push(plan);
    for (const [stream, text] of this.output) sink(stream, Buffer.from(text), () => undefined);
    return handleOf(Promise.resolve(this.end), this.gone.promise);
  }
}

/** Knows where the spaces are; makes none. */
class StandInSpaces extends Spaces {
  refusal: Refusal | undefined;
  readonly ensured: number[] = [];

  override ensure(user: number): string {
    if (this.refusal) throw this.refusal;
    this.ensured.push(user);
    return this.pathOf(user);
  }
}

const setup = (settings: Readonly<Record<string, string>> = {}) => {
  const config = readConfig({
    RUNNER_WORK_DIR: '/w',
    RUNNER_GIT: '/opt/git',
    RUNNER_EVO_WORKFLOW: '/opt/evo',
    RUNNER_TOOLS: 'sh=/bin/sh',
    ...settings,
  });
  const runs = new StandInRuns();
  const spaces = new StandInSpaces(config.workDir);
  const locks = new UserLocks();
  const quota = new StandInQuota(spaces);
  const discarded: number[] = [];
  const helpers = { discard: (user: number) => void discarded.push(user) };
  const handler = execHandler({ config, spaces, quota, locks, runs, helpers });
  const facts: AuditFacts[] = [];
  /** How many runs there were each time that an effect was said to begin. */
  const begun: number[] = [];
  const channel = { credit: (): number => 1_000_000, send: (): void => undefined };
  const outputs = new Outputs(channel, exec.streams);
  const run = (params: Partial<Params<'exec'>> = {}): Promise<Result<'exec'>> =>
    handler(
      { user: 7, tool: 'git', ...params },
      {
        operationId: 'the-operation',
        signal: new AbortController().signal,
        outputs,
        room: async () => undefined,
        begin: async () => {
          await new Promise(setImmediate);
          begun.push(runs.plans.length);
        },
        note: (more) => facts.push(more),
      },
    );
  const planOf = async (params: Partial<Params<'exec'>> = {}): Promise<LaunchPlan> => {
    await run(params);
    const plan = runs.plans.at(-1);
    runs.gone.resolve({ kind: 'lost' });
    if (!plan) throw new Error('nothing was started');
    return plan;
  };
  const noted = (): AuditFacts => Object.assign({}, ...facts) as AuditFacts;
  return { run, planOf, runs, spaces, quota, locks, outputs, noted, begun, discarded };
};

const refusalOf = async (answer: Promise<unknown>): Promise<Refusal> => {
  const error: unknown = await answer.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof Refusal)) throw new Error(`not refused: ${String(error)}`);
  return error;
};

const isFree = (locks: UserLocks): boolean => {
  try {
    locks.acquire(7, { action: 'exec', operationId: 'probe' })();
    return true;
  } catch {
    return false;
  }
};

it('is on record before anything is started, once', async () => {
  const { planOf, begun, runs } = setup();
  await planOf();
  expect(begun).toStrictEqual([0]);
  expect(runs.plans).toHaveLength(1);
});

it('is not put on record when it is refused before', async () => {
  const { run, begun, locks } = setup();
  await refusalOf(run({ tool: 'unknown' }));
  locks.acquire(7, { action: 'exec', operationId: 'other' });
  await refusalOf(run());
  expect(begun).toStrictEqual([]);
});

describe('what exec asks to be run', () => {
  it('is the tool of the allowlist, in the space of the user, with the configured limits', async () => {
    expect(await setup().planOf({ args: ['status', '-s'], dir: 'repos/x' })).toStrictEqual({
      uid: 20_007,
      program: '/opt/git',
      space: '/w/u20007',
      directory: 'repos/x',
      args: ['/opt/git', 'status', '-s'],
      environment: ['PATH=/usr/local/bin:/usr/bin:/bin', 'LANG=C.UTF-8', 'HOME=/w/u20007/home'],
      timeLimitMs: 120_000,
      outputBytesMax: 262_144,
      processesMax: 144,
      fileBytesMax: 1_073_741_824,
      addressBytesMax: 0,
      termGraceMs: 300,
      streams: 'empty',
    });
  });

  it('is in the home when no directory is named, and has no arguments when none are given', async () => {
    const plan = await setup().planOf({ tool: 'sh' });
    expect(plan.directory).toBe('');
    expect(plan.args).toStrictEqual(['/bin/sh']);
  });

  it('has room for the helper in the process limit, unless there is no limit', async () => {
    expect((await setup({ RUNNER_MAX_PROCESSES: '1' }).planOf()).processesMax).toBe(17);
    expect((await setup({ RUNNER_MAX_PROCESSES: '0' }).planOf()).processesMax).toBe(0);
  });

  it('has a grace for git alone', async () => {
    expect((await setup().planOf({ tool: 'git' })).termGraceMs).toBe(300);
    for (const tool of ['sh', 'evo-workflow', 'glab'])
      expect((await setup().planOf({ tool })).termGraceMs, tool).toBe(0);
  });

  it('takes the limits from the settings', async () => {
    const settings = {
      RUNNER_EXEC_TIMEOUT_SEC: '3',
      RUNNER_MAX_OUTPUT_BYTES: '5',
      RUNNER_MAX_FILE_BYTES: '6',
      RUNNER_MAX_ADDRESS_BYTES: '7',
    };
    expect(await setup(settings).planOf()).toMatchObject({
      timeLimitMs: 3_000,
      outputBytesMax: 5,
      fileBytesMax: 6,
      addressBytesMax: 7,
    });
  });
});

describe('the environment of a run', () => {
  const environment = async (env: string[]): Promise<Record<string, string>> => {
    const { environment: entries } = await setup().planOf({ env });
    const pairs = entries.map((entry): [string, string] => {
      const equals = entry.indexOf('=');
      return [entry.slice(0, equals), entry.slice(equals + 1)];
    });
    expect(new Set(pairs.map(([key]) => key)).size, 'each key once').toBe(pairs.length);
    return Object.fromEntries(pairs);
  };
  const defaults = { PATH: '/usr/local/bin:/usr/bin:/bin', LANG: 'C.UTF-8', HOME: '/w/u20007/home' };

  it('is the three defaults and what the request names, nothing of the service’s own', async () => {
    expect(Object.keys(process.env).length).toBeGreaterThan(3);
    expect(await environment([])).toStrictEqual(defaults);
    expect(await environment(['GITLAB_TOKEN=x', 'EMPTY='])).toStrictEqual({
      ...defaults,
      GITLAB_TOKEN: 'x',
      EMPTY: '',
    });
  });

  it('lets the request win over each default', async () => {
    expect(await environment(['PATH=/p', 'LANG=de', 'HOME=/h'])).toStrictEqual({ PATH: '/p', LANG: 'de', HOME: '/h' });
  });

  it('takes the last of several with one key', async () => {
    expect(await environment(['A=1', 'B=2', 'A=3', 'PATH=/a', 'PATH=/b'])).toStrictEqual({
      ...defaults,
      PATH: '/b',
      A: '3',
      B: '2',
    });
  });

  it('drops what starts with EXECX_, and nothing that only looks like it', async () => {
    expect(
      await environment(['EXECX_=1', 'EXECX_UID=0', 'execx_a=2', 'EXECX=3', 'A_EXECX_B=4', 'B=EXECX_C=5']),
    ).toStrictEqual({
      ...defaults,
      execx_a: '2',
      EXECX: '3',
      A_EXECX_B: '4',
      B: 'EXECX_C=5',
    });
  });

  it('cuts at the first equals sign', async () => {
    expect(await environment(['A==b=c='])).toStrictEqual({ ...defaults, A: '=b=c=' });
  });

  it('takes names that mean something to JavaScript as any other', async () => {
    const { environment: entries } = await setup().planOf({ env: ['__proto__=x', 'constructor=y'] });
    expect(entries.slice(3)).toStrictEqual(['__proto__=x', 'constructor=y']);
  });
});

describe('the agent', () => {
  it('comes last, whatever the arguments are', async () => {
    const plan = await setup().planOf({
      tool: 'evo-workflow',
      args: ['run', '--session-agent', 'other', '--'],
      agent: 'a.1',
    });
    expect(plan.args).toStrictEqual(['/opt/evo', 'run', '--session-agent', 'other', '--', '--session-agent', 'a.1']);
  });

  it('is absent when it is empty', async () => {
    expect((await setup().planOf({ tool: 'evo-workflow', args: ['run'], agent: '' })).args).toStrictEqual([
      '/opt/evo',
      'run',
    ]);
  });

  it('is never noted, and does not count as an argument of the caller’s', async () => {
    const { planOf, noted } = setup();
    await planOf({ tool: 'evo-workflow', args: ['run'], agent: 'planted-agent' });
    expect(noted()).toStrictEqual({ tool: 'evo-workflow', args: 1, exit: 0 });
  });
});

describe('how a run is answered', () => {
  const answer = async (end: End): Promise<Result<'exec'>> => {
    const { run, runs } = setup();
    runs.end = end;
    return run();
  };

  it('an exit: its code', async () => {
    expect(await answer({ kind: 'exit', exit: { ...exit, exitCode: 3 } })).toStrictEqual({
      exitCode: 3,
      truncated: false,
      timedOut: false,
      durationMs: 13,
      signal: null,
    });
  });

  it('a signal: -1 and its name', async () => {
    const end = { kind: 'exit', exit: { ...exit, exitCode: undefined, signal: 'SIGSEGV' } } as const;
    expect(await answer(end)).toMatchObject({ exitCode: -1, signal: 'SIGSEGV', timedOut: false });
  });

  it('the time limit: told as such, and audited as a timeout', async () => {
    const { run, runs, noted } = setup();
    runs.end = { kind: 'exit', exit: { ...exit, reason: 'timeout', exitCode: undefined, signal: 'SIGKILL' } };
    expect(await run()).toMatchObject({ exitCode: -1, timedOut: true, signal: 'SIGKILL' });
    expect(noted()).toMatchObject({ exit: -1, status: 'timeout' });
  });

  it('a leader that was not seen to exit has no code', async () => {
    const end = { kind: 'exit', exit: { ...exit, exitCode: undefined, signal: undefined } } as const;
    expect(await answer(end)).toMatchObject({ exitCode: -1, signal: null });
  });

  it.each([
    [true, false],
    [false, true],
    [true, true],
  ])('output that was cut (stdout %s, stderr %s) is told of each stream', async (stdoutCut, stderrCut) => {
    const { run, runs, outputs } = setup();
    runs.end = { kind: 'exit', exit: { ...exit, stdoutCut, stderrCut } };
    runs.output = [
      ['stdout', 'abc'],
      ['stderr', 'de'],
    ];
    expect(await run()).toMatchObject({ truncated: true });
    expect(outputs.ends()).toStrictEqual({
      stdout: { bytes: 3, cut: stdoutCut },
      stderr: { bytes: 2, cut: stderrCut },
    });
  });

  const refused: readonly (readonly [string, End, string])[] = [
    ['a lost run', { kind: 'lost' }, 'uncertain'],
    ['a spawner that was not reached', { kind: 'unreached' }, 'worker_unavailable'],
    ['a run that could not be ended', { kind: 'incomplete', exit }, 'kill_incomplete'],
    ['a run that was stopped', { kind: 'exit', exit: { ...exit, reason: 'stopped' } }, 'uncertain'],
    ['a run whose spawner died', { kind: 'exit', exit: { ...exit, reason: 'spawnerLost' } }, 'uncertain'],
  ];
  it.each(refused)('%s', async (_name, end, code) => {
    expect((await refusalOf(answer(end))).code).toBe(code);
  });

  /** By hand: what each step's failure means. */
  const directory: Readonly<Record<string, string>> = {
    EXDEV: 'outside_workspace',
    ENOENT: 'not_found',
    ENAMETOOLONG: 'not_found',
    ENOTDIR: 'bad_target',
    ELOOP: 'bad_target',
  };
  const codeOf = (step: string, errno: string): string => {
    const broken = ['ENOTDIR', 'EPERM', 'EACCES', 'ENOENT', 'ELOOP'].includes(errno);
    if (step === 'space' || step === 'home') return broken ? 'workspace_broken' : 'exec_failed';
    if (step === 'limits') return 'limit_failed';
    return (step === 'directory' ? directory[errno] : undefined) ?? 'exec_failed';
  };
  it.each(launchSteps)('a launch that failed at the step %s, by every errno', async (step) => {
    for (const errno of [...Object.keys(constants.errno), 'E4095']) {
      const refusal = await refusalOf(answer({ kind: 'failed', step, errno }));
      const code = codeOf(step, errno);
      expect(refusal.code, errno).toBe(code);
      const told = code === 'exec_failed' || code === 'limit_failed' ? { step, errno } : undefined;
      expect(refusal.details, errno).toStrictEqual(told);
    }
  });
});

describe('the order of exec’s own checks', () => {
  it('a tool that is not allowed: no space, no lock, nothing noted', async () => {
    const { run, spaces, runs, noted } = setup();
    for (const tool of ['bash', '/opt/git', '', 'constructor', 'GIT', '../git']) {
      expect((await refusalOf(run({ tool }))).code).toBe('tool_not_allowed');
    }
    expect(spaces.ensured).toStrictEqual([]);
    expect(runs.plans).toStrictEqual([]);
    expect(noted()).toStrictEqual({});
  });

  it('a broken space comes before the lock', async () => {
    const { run, spaces, locks } = setup();
    locks.acquire(7, { action: 'exec', operationId: 'other' });
    spaces.refusal = new Refusal('workspace_broken');
    expect((await refusalOf(run())).code).toBe('workspace_broken');
  });

  it.each(['disk_quota', 'usage_failed'] as const)('%s comes after the space and before the lock', async (code) => {
    const { run, runs, spaces, quota, locks } = setup();
    locks.acquire(7, { action: 'exec', operationId: 'other' });
    quota.refusal = new Refusal(code);
    expect((await refusalOf(run())).code).toBe(code);
    expect(spaces.ensured).toStrictEqual([7]);
    spaces.refusal = new Refusal('workspace_broken');
    expect((await refusalOf(run())).code).toBe('workspace_broken');
    expect(quota.asked).toStrictEqual(['check 7']);
    expect(runs.plans).toStrictEqual([]);
  });

  it('what the space holds counts as changed, and the user’s helpers go, once the run is gone and not before', async () => {
    const { run, runs, quota, discarded } = setup();
    await run();
    expect([quota.asked, discarded]).toStrictEqual([['check 7'], []]);
    runs.gone.resolve({ kind: 'lost' });
    await new Promise(setImmediate);
    expect([quota.asked, discarded]).toStrictEqual([['check 7', 'changed 7'], [7]]);
  });

  it('what the space holds has not changed by a run that never was', async () => {
    const { run, runs, quota } = setup();
    runs.refusal = new Refusal('overloaded');
    await refusalOf(run());
    await new Promise(setImmediate);
    expect(quota.asked).toStrictEqual(['check 7']);
  });

  it('a locked user is refused before anything is started, and told by whom', async () => {
    const { run, locks, runs } = setup();
    locks.acquire(7, { action: 'exec', operationId: 'other' });
    const refusal = await refusalOf(run());
    expect(refusal.code).toBe('busy');
    expect(refusal.details).toStrictEqual({ action: 'exec', operationId: 'other' });
    expect(runs.plans).toStrictEqual([]);
  });
});

describe('the lock of the user', () => {
  it('is held by the operation until the run is gone, not only until its answer', async () => {
    const { run, runs, locks } = setup();
    await run();
    const refusal = await refusalOf(run());
    expect(refusal.details).toStrictEqual({ action: 'exec', operationId: 'the-operation' });
    runs.gone.resolve({ kind: 'lost' });
    await new Promise(setImmediate);
    expect(isFree(locks)).toBe(true);
  });

  it('tells of a lost run only when nothing of it is left', async () => {
    const { run, runs } = setup();
    runs.end = { kind: 'lost' };
    let told = false;
    const answer = refusalOf(run()).finally(() => {
      told = true;
    });
    for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
    expect(runs.plans).toHaveLength(1);
    expect(told).toBe(false);
    runs.gone.resolve({ kind: 'lost' });
    expect((await answer).code).toBe('uncertain');
  });

  const resisting: readonly (readonly [string, End])[] = [
    ['a lost run', { kind: 'lost' }],
    ['a run that could not be ended', { kind: 'incomplete', exit }],
  ];
  it.each(resisting)('stays with %s', async (_name, end) => {
    const { run, runs, locks } = setup();
    runs.end = end;
    await refusalOf(run());
    await new Promise(setImmediate);
    expect(isFree(locks)).toBe(false);
    runs.gone.resolve({ kind: 'lost' });
    await new Promise(setImmediate);
    expect(isFree(locks)).toBe(true);
  });

  it('is given back at once when nothing was started', async () => {
    const { run, runs, locks } = setup();
    runs.refusal = new Refusal('worker_unavailable');
    expect((await refusalOf(run())).code).toBe('worker_unavailable');
    expect(isFree(locks)).toBe(true);
  });
});
