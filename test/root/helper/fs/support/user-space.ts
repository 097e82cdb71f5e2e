import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, chownSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { FsHelper } from '../../../../support/fs-helper.ts';
import { asUser, runToEnd } from '../../../worker/support/as-worker.ts';

const folders = ['', 'tmp', 'home', 'home/repos', 'home/work'] as const;

/** A space of a user's as the worker makes it, in a folder of the test's own, and a folder outside beside it. */
export class UserSpace {
  readonly folder: string;
  readonly uid: number;
  readonly space: string;
  readonly home: string;
  /** The user's own too: nothing but the walk keeps the helper out of it. */
  readonly outside: string;
  readonly #helpers: FsHelper[] = [];
  readonly #processes: ChildProcess[] = [];

  constructor(uid: number) {
    this.uid = uid;
    this.folder = mkdtempSync('/tmp/runner-test-fs-');
    chmodSync(this.folder, 0o711);
    this.space = join(this.folder, `u${uid}`);
    this.home = join(this.space, 'home');
    this.outside = join(this.folder, 'outside');
    for (const path of [...folders.map((name) => join(this.space, name)), this.outside]) {
      mkdirSync(path, { mode: 0o700 });
      chownSync(path, uid, uid);
    }
  }

  /** A helper that has become the user. */
  async helper(under: readonly string[] = []): Promise<FsHelper> {
    const helper = await FsHelper.of(this.uid, this.space, { under });
    this.#helpers.push(helper);
    return helper;
  }

  /** Runs a shell script as the user, in the home; fails when the script does. `$OUT` is the folder outside. */
  sh(script: string): string {
    const text = `set -eu; cd "${this.home}"; HOME=$PWD; OUT="${this.outside}"; SPACE="${this.space}"\n${script}`;
    const ended = runToEnd(asUser(this.uid, this.uid, ['/bin/sh', '-c', text]));
    if (ended.status !== 0) throw new Error(`the script failed: ${ended.stderr}`);
    return ended.stdout;
  }

  /** Starts a program as the user, in the home, and waits until it says something. */
  async start(command: readonly string[]): Promise<ChildProcess> {
    const [program = '', ...args] = asUser(this.uid, this.uid, command);
    const child = spawn(program, args, { cwd: this.home, stdio: ['ignore', 'pipe', 'inherit'], env: {} });
    this.#processes.push(child);
    await new Promise<void>((resolve, reject) => {
      child.stdout?.once('data', () => resolve());
      child.once('exit', (code) => reject(new Error(`it ended with ${code}`)));
    });
    return child;
  }

  /** Everything beneath a folder of the test's: kind, mode, owner and content. Enough to see any change that matters. */
  tree(root = this.space, prefix = ''): string[] {
    return readdirSync(root)
      .sort()
      .flatMap((name) => {
        const path = join(root, name);
        const stat = lstatSync(path);
        const content = stat.isFile() ? ` ${readFileSync(path, 'latin1').slice(0, 64)}` : '';
        const line = `${prefix}${name} ${stat.mode.toString(8)} ${stat.uid}:${stat.gid}${content}`;
        return [line, ...(stat.isDirectory() ? this.tree(path, `${prefix}${name}/`) : [])];
      });
  }

  /** A new space's tree. */
  get newTree(): string[] {
    const line = (name: string) => `${name} 40700 ${this.uid}:${this.uid}`;
    return ['home', 'home/repos', 'home/work', 'tmp'].map(line);
  }

  /** Ends what was started. */
  stop(): void {
    for (const child of this.#processes.splice(0)) child.kill('SIGKILL');
  }

  async remove(): Promise<void> {
    this.stop();
    for (const helper of this.#helpers) await helper.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
