import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { type ProcessView, treeOf } from '../support/processes.ts';
import { productionRights, root, token } from '../support/service.ts';
import { eventually } from '../support/wait.ts';

/** The parts of the product that live as long as it does. */
export const parts = ['gateway', 'worker', 'spawner'] as const;
export type Part = (typeof parts)[number];

const patterns: Readonly<Record<Part, RegExp>> = {
  // Init's own arguments name both programs too; the parts have theirs as the first argument.
  gateway: /^\S+ \S*gateway\/main\.js/,
  worker: /^\S+ \S*worker\/main\.js/,
  spawner: /^\S+ spawner /,
};

/** Supervisors are forks of the spawner and show its command line; their real uid is their own. */
export const killerUidFirst = 0x4000_0000;

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
};

/**
 * The built product under production rights, in a folder of its own. Unlike the tests' `Service` it reads neither
 * audit nor log: on few cores that reading would be measured too.
 */
export class Product {
  static readonly #running = new Set<Product>();

  readonly folder = mkdtempSync('/tmp/runner-bench-');
  readonly port: number;
  readonly token = token;
  readonly socket = join(this.folder, 'run', 'worker.sock');
  readonly workDir = join(this.folder, 'work');
  readonly #process: ChildProcess;
  readonly #exited: Promise<void>;

  private constructor(port: number, command: readonly string[], environment: Readonly<Record<string, string>>) {
    this.port = port;
    chmodSync(this.folder, 0o711);
    mkdirSync(join(this.folder, 'run'), { mode: 0o750 });
    const log = openSync(this.#log, 'w', 0o600);
    const [setpriv, ...rights] = productionRights;
    this.#process = spawn(setpriv, [...rights, ...command], {
      detached: true,
      cwd: '/',
      stdio: ['ignore', openSync('/dev/null', 'w'), log],
      env: {
        PATH: '/usr/local/bin:/usr/bin:/bin',
        RUNNER_TOKEN: token,
        RUNNER_ADDR: `127.0.0.1:${port}`,
        RUNNER_WORK_DIR: this.workDir,
        RUNNER_SOCKET: this.socket,
        RUNNER_TOOLS: 'true=/bin/true,sh=/bin/sh,head=/usr/bin/head',
        ...environment,
      },
    });
    closeSync(log);
    Product.#running.add(this);
    this.#exited = new Promise((resolve) => this.#process.once('exit', () => resolve()));
  }

  /** Starts all of it and waits until it is healthy. */
  static async start(
    command: readonly string[] = [process.execPath, `${root}/dist/deploy/cli.js`, 'start'],
    environment: Readonly<Record<string, string>> = {},
  ): Promise<Product> {
    const product = new Product(await freePort(), command, environment);
    return product.#up('healthz 204', () => product.#healthy());
  }

  /** Starts the worker without a gateway and waits until it can be linked. */
  static async startWorker(): Promise<Product> {
    const product = new Product(await freePort(), [process.execPath, `${root}/dist/deploy/cli.js`, 'worker'], {});
    return product.#up('the worker is ready', () => readFileSync(product.#log, 'utf8').includes('"ready"'));
  }

  /** Stops all there are: for a bench that is interrupted. */
  static async stopAll(): Promise<void> {
    await Promise.all(Array.from(Product.#running, (product) => product.stop()));
  }

  get #log(): string {
    return join(this.folder, 'log');
  }

  /** Everything that it consists of at the moment, runs included. */
  processes(): ProcessView[] {
    return treeOf(this.#process.pid ?? -1);
  }

  /** pid of a part. */
  pid(part: Part): number {
    const found = this.processes().find(
      ({ command, uids }) => (uids[0] ?? killerUidFirst) < killerUidFirst && patterns[part].test(command),
    );
    if (found === undefined) throw new Error(`there is no ${part}`);
    return found.pid;
  }

  /** Stops it as an operator would, and removes its folder. */
  async stop(): Promise<void> {
    this.#process.kill('SIGTERM');
    await this.#exited;
    Product.#running.delete(this);
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Waits until it is up; one that isn't leaves its log in the error and nothing else. */
  async #up(what: string, probe: () => boolean | Promise<boolean>): Promise<this> {
    const ended = this.#exited.then(() => Promise.reject(new Error('it ended at its start')));
    try {
      await Promise.race([eventually(what, probe, 20_000), ended]);
      return this;
    } catch (error) {
      const log = readFileSync(this.#log, 'utf8');
      await this.stop();
      throw new Error(`${error}\n${log}`);
    }
  }

  #healthy(): Promise<boolean> {
    return new Promise((resolve) => {
      const asked = request({ host: '127.0.0.1', port: this.port, path: '/healthz' }, (response) => {
        response.resume();
        resolve(response.statusCode === 204);
      });
      asked.once('error', () => resolve(false));
      asked.end();
    });
  }
}
