import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { compileCache } from '../../../support/compile-cache.ts';
import { productionRights } from '../../../support/service.ts';
import { eventually } from '../../../support/wait.ts';

/** The native program, as the worker uses it. */
export const nativeProgram = fileURLToPath(
  new URL('../../../../dist/helper/native/workspace-runner-native', import.meta.url),
);

const bareEnvironment = { PATH: '/usr/local/bin:/usr/bin:/bin' };
const environment = { ...bareEnvironment, ...compileCache };

const script = (name: string): string => fileURLToPath(new URL(`./${name}.ts`, import.meta.url));

/** A folder of this test's own that every user can pass through; removed by `remove`. */
export const ownFolder = (): { readonly path: string; readonly remove: () => void } => {
  const path = mkdtempSync('/tmp/runner-test-worker-');
  chmodSync(path, 0o711);
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
};

/** How a child came out. */
export interface Ended {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command to its end. */
export const runToEnd = (command: readonly string[], input?: string, env: NodeJS.ProcessEnv = environment): Ended => {
  const [program = '', ...args] = command;
  const { status, signal, stdout, stderr, error } = spawnSync(program, args, {
    encoding: 'utf8',
    env,
    cwd: '/',
    timeout: 240_000,
    killSignal: 'SIGKILL',
    ...(input === undefined ? {} : { input }),
  });
  if (error) throw error;
  return { status, signal, stdout, stderr };
};

/** The command that runs a script beside this file under the worker's rights. */
export const workerCommand = (name: string, args: readonly string[]): string[] => [
  ...productionRights,
  process.execPath,
  script(name),
  ...args,
];

/** Runs a command as a user: that uid and gid, no other group, no capability. */
export const asUser = (uid: number, gid: number, command: readonly string[]): string[] => [
  'setpriv',
  `--reuid=${uid}`,
  `--regid=${gid}`,
  '--clear-groups',
  '--inh-caps=-all',
  '--bounding-set=-all',
  '--no-new-privs',
  ...command,
];

/** A command in a process namespace of its own, with a reaper: nothing that it starts outlives it. */
export const inOwnProcesses = (command: readonly string[]): string[] => [
  'unshare',
  '--pid',
  '--fork',
  '--mount-proc',
  '--kill-child',
  'sh',
  '-c',
  '"$@"; exit $?',
  'sh',
  ...command,
];

/** Runs a command to its end, killed when it enters its `when`-th call of a system call, counted from 1: that call does not happen. */
export const killedAt = (call: string, when: number, command: readonly string[]): Ended =>
  runToEnd(
    ['strace', '-f', '-qq', '-o', '/dev/null', `--inject=${call}:signal=SIGKILL:when=${when}`, ...command],
    undefined,
    bareEnvironment, // the cache is made with calls that would count
  );

/** Something that a script said: one JSON object in a line. */
export type Said = Readonly<Record<string, unknown>> & { readonly said: string };

/** What a script does between two lines that are waited for takes no longer, ms. */
const scriptLimitMs = 100_000;

/** A script that goes on, and what it says. */
export class Script {
  readonly process: ChildProcess;
  readonly lines: Said[] = [];
  readonly errors: string[] = [];
  readonly exited: Promise<number | null>;
  #last = 0;

  constructor(command: readonly string[]) {
    const [program = '', ...args] = command;
    this.process = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'], env: environment, cwd: '/' });
    this.exited = new Promise((resolve) => this.process.once('close', resolve));
    if (this.process.stdout) {
      createInterface({ input: this.process.stdout }).on('line', (line) => this.lines.push(JSON.parse(line) as Said));
    }
    if (this.process.stderr) {
      createInterface({ input: this.process.stderr }).on('line', (line) => this.errors.push(line));
    }
    this.process.stdin?.on('error', () => undefined);
  }

  /** The next line of one of these kinds, after the last one that was asked for. */
  async next(...kinds: readonly string[]): Promise<Said> {
    return eventually(
      kinds.join(' or '),
      () => {
        const index = this.lines.findIndex((line, at) => at >= this.#last && kinds.includes(line.said));
        if (index < 0) return undefined;
        this.#last = index + 1;
        return this.lines[index];
      },
      scriptLimitMs,
    );
  }

  /** Ends it at once. */
  async end(): Promise<void> {
    if (this.process.exitCode === null && this.process.signalCode === null) this.process.kill('SIGKILL');
    await this.exited;
  }
}
