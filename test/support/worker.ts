import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type ProcessView, treeOf } from './processes.ts';
import { type AuditLine, productionRights, root } from './service.ts';
import { eventually } from './wait.ts';

/** The worker alone, under production rights, in a folder of its own: whoever is the gateway is up to the test. */
export class Worker {
  readonly folder: string;
  readonly workDir: string;
  readonly socket: string;
  readonly audit: AuditLine[] = [];
  readonly log: string[] = [];
  readonly process: ChildProcess;
  readonly exited: Promise<unknown>;

  private constructor(settings: Readonly<Record<string, string>>) {
    this.folder = mkdtempSync('/tmp/runner-test-');
    chmodSync(this.folder, 0o711);
    this.workDir = join(this.folder, 'work');
    this.socket = join(this.folder, 'run', 'worker.sock');
    const [setpriv, ...rights] = productionRights;
    this.process = spawn(setpriv, [...rights, process.execPath, `${root}/dist/worker/main.js`], {
      stdio: ['ignore', 'pipe', 'pipe'],
      cwd: '/',
      env: {
        PATH: '/usr/local/bin:/usr/bin:/bin',
        RUNNER_WORK_DIR: this.workDir,
        RUNNER_SOCKET: this.socket,
        ...settings,
      },
    });
    this.exited = new Promise((resolve) => this.process.once('exit', resolve));
    const { stdout, stderr } = this.process;
    if (stderr) createInterface({ input: stderr }).on('line', (line) => this.log.push(line));
    if (stdout) createInterface({ input: stdout }).on('line', (line) => this.audit.push(JSON.parse(line) as AuditLine));
  }

  /** Starts a worker and waits until it listens. */
  static async start(settings: Readonly<Record<string, string>> = {}): Promise<Worker> {
    const worker = new Worker(settings);
    await worker.audited(({ action }) => action === 'worker.started', 60_000);
    return worker;
  }

  get pid(): number {
    return this.process.pid ?? -1;
  }

  /** Its processes: the spawner, supervisors and tools. */
  get tree(): ProcessView[] {
    return treeOf(this.pid);
  }

  /** The audit line that fits, waiting for it. */
  audited(what: (line: AuditLine) => boolean, limitMs = 15_000): Promise<AuditLine> {
    return eventually(`an audit line\n${this.log.join('\n')}`, () => this.audit.find(what), limitMs);
  }

  /** How often a link was given up, for this reason. */
  lost(reason: string): number {
    return this.audit.filter((line) => line.action === 'link.lost' && line['reason'] === reason).length;
  }

  async stop(): Promise<void> {
    this.process.kill('SIGTERM');
    await Promise.race([this.exited, new Promise((resolve) => setTimeout(resolve, 10_000))]);
    for (const { pid } of this.tree) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // gone already
      }
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}
