import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';
import { Client } from '../support/http.ts';
import { allProcesses, type ProcessView, treeOf } from '../support/processes.ts';
import { root, token } from '../support/service.ts';
import { eventually } from '../support/wait.ts';
import { type Bind, ociConfig } from './oci-config.ts';

/** Where the product lies in the container. */
const product = '/opt/workspace-runner';

/** RUNNER_ADDR's default. */
const defaultPort = 8090;

/** Where both cgroup versions are mounted at once. crun refuses to start on such a machine, though it is told to use none. */
const hybridCgroups = '/sys/fs/cgroup/unified';

/** crun; on a machine with both cgroup versions in a mount namespace of its own that shows it only one. */
const crun: readonly [string, ...string[]] = existsSync(hybridCgroups)
  ? [
      'unshare',
      '--mount',
      '--propagation',
      'private',
      'sh',
      '-c',
      `umount -l ${hybridCgroups} && exec crun "$@"`,
      'crun',
    ]
  : ['crun'];

const requireCrun = (): void => {
  if (spawnSync('crun', ['--version']).error)
    throw new Error('"crun" is missing: the container test needs it (Debian package: crun).');
};

/** Files of /etc that programs need to run at all; nothing else of the host's /etc is to be seen. */
const etcFiles = ['ld.so.cache', 'nsswitch.conf'];

/**
 * A root file system of mount points and links: the host's programs and libraries, read-only, and the built
 * product. Returns what is to be mounted.
 */
const makeRoot = (folder: string): Bind[] => {
  const binds: Bind[] = [];
  for (const name of ['proc', 'dev', 'tmp', 'run', 'work', 'etc', 'opt', 'usr', 'var', 'root'])
    mkdirSync(join(folder, name), { recursive: true, mode: 0o755 });
  for (const name of ['usr', 'bin', 'sbin', 'lib', 'lib64'].filter((name) => existsSync(`/${name}`))) {
    if (lstatSync(`/${name}`).isSymbolicLink()) {
      symlinkSync(readlinkSync(`/${name}`), join(folder, name));
    } else {
      mkdirSync(join(folder, name), { recursive: true });
      binds.push({ host: `/${name}`, inside: `/${name}` });
    }
  }
  for (const name of etcFiles.filter((name) => existsSync(`/etc/${name}`)))
    copyFileSync(`/etc/${name}`, join(folder, 'etc', name));
  writeFileSync(join(folder, 'etc/passwd'), 'root:x:0:0:root:/root:/bin/sh\n');
  writeFileSync(join(folder, 'etc/group'), 'root:x:0:\n');
  for (const part of ['deploy', 'dist', 'node_modules']) {
    mkdirSync(join(folder, product, part), { recursive: true });
    binds.push({ host: join(root, part), inside: join(product, part) });
  }
  copyFileSync(join(root, 'package.json'), join(folder, product, 'package.json'));
  mkdirSync(join(folder, 'opt/node'));
  writeFileSync(join(folder, 'opt/node/node'), '');
  binds.push({ host: realpathSync(process.execPath), inside: '/opt/node/node' });
  return binds;
};

/** The product in a container of its own, as an engine would start it from the seed's compose file. */
export class Container {
  readonly workDir: string;
  readonly stdout: string[] = [];
  readonly stderr: string[] = [];
  readonly client = new Client(defaultPort, token);
  /** Resolves when the container is over, with PID 1's exit status. */
  readonly exited: Promise<number | null>;
  readonly #folder: string;
  readonly #crun: ChildProcess;

  private constructor(folder: string, settings: Readonly<Record<string, string>>) {
    this.#folder = folder;
    this.workDir = join(folder, 'work');
    mkdirSync(this.workDir, { mode: 0o755 });
    const binds = makeRoot(join(folder, 'rootfs'));
    const config = ociConfig({
      command: [`${product}/deploy/workspace-runner`],
      environment: {
        PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/node',
        RUNNER_TOKEN: token,
        ...settings,
      },
      binds: [...binds, { host: this.workDir, inside: '/work', writable: true }],
    });
    writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
    const [program, ...before] = crun;
    // Where the state lies is the test's own affair, and the limits of a cgroup are an engine's.
    const global = ['--root', join(folder, 'state'), '--cgroup-manager', 'disabled'];
    const run = ['run', '--bundle', folder, '--pid-file', this.#pidFile, basename(folder)];
    this.#crun = spawn(program, [...before, ...global, ...run], { stdio: ['ignore', 'pipe', 'pipe'] });
    this.exited = new Promise((resolve) => this.#crun.once('close', resolve));
    if (this.#crun.stdout) createInterface({ input: this.#crun.stdout }).on('line', (line) => this.stdout.push(line));
    if (this.#crun.stderr) createInterface({ input: this.#crun.stderr }).on('line', (line) => this.stderr.push(line));
  }

  /** Starts a container and waits until the service in it is healthy. */
  static async start(settings: Readonly<Record<string, string>>): Promise<Container> {
    requireCrun();
    const folder = mkdtempSync('/tmp/runner-container-');
    chmodSync(folder, 0o755);
    const container = new Container(folder, settings);
    await Promise.race([
      container.healthy(),
      container.exited.then((code) => {
        throw new Error(`the container ended at its start (${code}):\n${container.stderr.join('\n')}`);
      }),
    ]);
    return container;
  }

  get #pidFile(): string {
    return join(this.#folder, 'pid');
  }

  /** PID 1 of the container, as the host numbers it. */
  get init(): number {
    return Number(readFileSync(this.#pidFile, 'utf8'));
  }

  /** Waits until probes would see the service as up. */
  async healthy(): Promise<void> {
    await eventually(
      'healthz 204',
      async () => (await this.client.get('/healthz').catch(() => undefined))?.status === 204,
      20_000,
    );
  }

  /** Runs a tool for a user. */
  exec(user: number, tool: string, args: readonly string[], more: Readonly<Record<string, unknown>> = {}) {
    return this.client.post('/v1/exec', { user, tool, args, ...more });
  }

  /** Runs a shell script for a user. */
  sh(user: number, script: string) {
    return this.exec(user, 'sh', ['-c', script]);
  }

  /** The container's processes, zombies included: those of its pid namespace. */
  processes(): ProcessView[] {
    return treeOf(this.init);
  }

  /** The process whose command line matches. */
  process(pattern: RegExp): ProcessView | undefined {
    return this.processes().find(({ command }) => pattern.test(command));
  }

  /** Runs a command beside the service: in its pid and mount namespaces, with the host's root's rights. */
  enter(...command: readonly string[]) {
    return spawnSync('nsenter', ['--target', String(this.init), '--pid', '--mount', '--', ...command], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 10_000,
    });
  }

  /** Ends what is left of the container and removes its folder. */
  async remove(): Promise<void> {
    this.client.close();
    if (this.#crun.exitCode === null && existsSync(this.#pidFile)) {
      if (allProcesses().some(({ pid }) => pid === this.init)) process.kill(this.init, 'SIGKILL');
      await this.exited;
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
