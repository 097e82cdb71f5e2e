import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Client } from './http.ts';
import { allProcesses, killAll, type ProcessView, treeOf } from './processes.ts';
import { eventually } from './wait.ts';

export const root = new URL('../..', import.meta.url).pathname.replace(/\/$/, '');

/** The rights of the minimal container, given to a process that starts with all. */
export const productionRights = [
  'setpriv',
  '--bounding-set=-all,+setuid,+setgid,+chown',
  '--inh-caps=-all',
  '--no-new-privs',
] as const;

/** Tools that tests run through the service, beside git. */
export const testTools = ['sh=/bin/sh', `show=${root}/dist/test/show`, `attack=${root}/dist/test/attack`].join(',');

export const token = 'a-token-for-tests-that-is-long-enough-0123456789';

/** One line of the audit. */
export type AuditLine = Readonly<Record<string, unknown>> & { readonly action: string; readonly status: string };

interface ServiceOptions {
  /** Settings on top of the tests' own. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Leaves standard output unread, as a stalled reader would. */
  readonly auditUnread?: boolean;
  /** A folder of an earlier service, to start on again. */
  readonly folder?: string;
  /** What becomes the service, in place of its own command line. */
  readonly program?: string;
}

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer().once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });

/** Which one of the processes of tests this is, of those that run at once. */
const poolId = Number(process.env['VITEST_POOL_ID'] ?? 0);

/** uid and gid of the gateways of this process of tests: what a service ends of its gateway's is no other service's. */
export const gatewayId = 19_980 + poolId;

/** Ports of each process of tests, of its own: a service takes its port up late, and again after a crash. */
const portsEach = 2_000;
/** All of them are below what the kernel gives to whoever asks for any port (net.ipv4.ip_local_port_range). */
const firstPort = 10_000 + portsEach * poolId;
let portsGiven = 0;

const freePort = async (): Promise<number> => {
  for (let tries = 0; tries < portsEach; tries += 1) {
    const port = firstPort + (portsGiven++ % portsEach);
    if (await isFree(port)) return port;
  }
  throw new Error('no port is free');
};

/** The real service, started as an operator would start it, under production rights, in a folder of its own. */
export class Service {
  readonly folder: string;
  readonly workDir: string;
  readonly socket: string;
  readonly port: number;
  readonly audit: AuditLine[] = [];
  readonly auditText: string[] = [];
  readonly log: string[] = [];
  readonly client: Client;
  readonly process: ChildProcess;
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;

  private constructor(folder: string, port: number, options: ServiceOptions) {
    this.folder = folder;
    this.workDir = join(folder, 'work');
    this.socket = join(folder, 'run', 'worker.sock');
    this.port = port;
    this.client = new Client(port, token);
    const [setpriv, ...rights] = productionRights;
    const program = options.program ?? `${root}/dist/deploy/cli.js`;
    this.process = spawn(setpriv, [...rights, process.execPath, program, 'start'], {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      cwd: '/',
      env: {
        PATH: '/usr/local/bin:/usr/bin:/bin',
        RUNNER_TOKEN: token,
        RUNNER_ADDR: `127.0.0.1:${port}`,
        RUNNER_WORK_DIR: this.workDir,
        RUNNER_SOCKET: this.socket,
        RUNNER_TOOLS: testTools,
        // Each takes as much of a processor as all else of a start takes together.
        RUNNER_HELPERS_STANDBY: '1',
        RUNNER_GATEWAY_UID: String(gatewayId),
        RUNNER_GATEWAY_GID: String(gatewayId),
        ...options.settings,
      },
    });
    this.exited = new Promise((resolve) => this.process.once('exit', (code, signal) => resolve({ code, signal })));
    if (this.process.stderr) createInterface({ input: this.process.stderr }).on('line', (line) => this.log.push(line));
    if (this.process.stdout && !options.auditUnread) {
      createInterface({ input: this.process.stdout }).on('line', (line) => {
        this.auditText.push(line);
        this.audit.push(JSON.parse(line) as AuditLine);
      });
    }
  }

  /** Starts a service and waits until it is healthy. */
  static async start(options: ServiceOptions = {}): Promise<Service> {
    const service = await Service.launch(options);
    await service.healthy();
    return service;
  }

  /** Starts a service without waiting for anything. */
  static async launch(options: ServiceOptions = {}): Promise<Service> {
    const folder = options.folder ?? mkdtempSync('/tmp/runner-test-');
    if (!options.folder) {
      // Users pass through to their spaces beneath it.
      chmodSync(folder, 0o711);
      mkdirSync(join(folder, 'run'), { mode: 0o750 });
    }
    return new Service(folder, await freePort(), options);
  }

  /** Waits until probes would see it as up. */
  async healthy(limitMs = 60_000): Promise<void> {
    await eventually(
      `healthz 204\n${this.log.join('\n')}`,
      async () => (await this.client.get('/healthz').catch(() => undefined))?.status === 204,
      limitMs,
    );
  }

  /** Runs a tool for a user. */
  exec(user: number, tool: string, args: readonly string[] = [], more: Readonly<Record<string, unknown>> = {}) {
    return this.client.post('/v1/exec', { user, tool, args, ...more });
  }

  /** A process of the service. */
  part(which: 'init' | 'worker' | 'gateway' | 'spawner'): ProcessView {
    const pattern = {
      init: / init /,
      worker: /^\S+ \S*worker\/main/,
      gateway: /^\S+ \S*gateway\/main/,
      spawner: / spawner /,
    }[which];
    const tree = treeOf(this.process.pid ?? -1);
    // Between fork and exec, and as a supervisor for good, a child has its parent's command line.
    const isCopy = (parent: number) => tree.some(({ pid, command }) => pid === parent && pattern.test(command));
    const found = tree.find(
      ({ command, uids, parent }) =>
        uids[0] !== undefined && uids[0] < 0x40000000 && pattern.test(command) && !isCopy(parent),
    );
    if (!found) throw new Error(`there is no ${which}`);
    return found;
  }

  /** Waits for another process in the place of one that was ended, and until that serves. */
  async replaced(which: 'worker' | 'gateway', before: number): Promise<void> {
    const another = (): boolean => {
      try {
        return this.part(which).pid !== before;
      } catch {
        return false;
      }
    };
    await eventually(`another ${which}`, another, 60_000);
    await this.healthy();
  }

  /** The audit line that fits, waiting for it: it is written after the answer. */
  async audited(what: (line: AuditLine) => boolean): Promise<AuditLine> {
    return eventually('an audit line', () => this.audit.find(what));
  }

  /** Stops it gracefully and removes its folder; fails if anything of it is left. */
  async stop(): Promise<void> {
    const before = treeOf(this.process.pid ?? -1).map(({ pid }) => pid);
    this.process.kill('SIGTERM');
    await Promise.race([this.exited, new Promise((resolve) => setTimeout(resolve, 10_000))]);
    const left = allProcesses().filter(({ pid, command }) => before.includes(pid) && command !== '');
    this.destroy();
    if (left.length > 0) throw new Error(`left after the stop: ${JSON.stringify(left)}`);
  }

  /** Ends it at once; for tests whose service is broken on purpose. */
  destroy(): void {
    this.client.close();
    if (this.process.pid !== undefined && this.process.exitCode === null && this.process.signalCode === null) {
      killAll(treeOf(this.process.pid).map(({ pid }) => pid));
    }
    if (existsSync(this.folder) && this.folder.startsWith('/tmp/runner-test-')) {
      rmSync(this.folder, { recursive: true, force: true });
    }
  }
}
