import { type ChildProcess, spawn } from 'node:child_process';
import { type FsCleanRepository, fsFrameBytesMax } from '../../helper/contract/fs.ts';
import { productionRights, root } from './service.ts';

/** The compiled program, as the spawner starts it. */
const program = `${root}/dist/helper/fs/main.js`;

/** One message of the helper's. */
export type Said = Readonly<Record<string, unknown>> & { readonly kind?: unknown };

/** One message as it goes over the pipe. */
export const frameOf = (message: unknown): Buffer => {
  const body = Buffer.from(typeof message === 'string' ? message : JSON.stringify(message));
  const prefix = Buffer.alloc(4);
  prefix.writeUInt32BE(body.length);
  return Buffer.concat([prefix, body]);
};

interface HelperOptions {
  /** A command that runs it: rights and limits. */
  readonly under?: readonly string[];
}

/** The fs helper itself, started as root with pipes under the production rights, and spoken to without a worker. */
export class FsHelper {
  readonly process: ChildProcess;
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  /** What it wrote to standard error. */
  errors = '';
  #received = Buffer.alloc(0);
  readonly #said: Said[] = [];
  readonly #waiting: ((said: Said | undefined) => void)[] = [];
  #over = false;
  #id = 0;

  constructor({ under = [] }: HelperOptions = {}) {
    const [first = '', ...rest] = [...under, ...productionRights, process.execPath, '--disable-sigusr1', program];
    this.process = spawn(first, rest, { stdio: ['pipe', 'pipe', 'pipe'], env: {}, cwd: '/' });
    this.process.stdin?.on('error', () => undefined);
    this.process.stdout?.on('data', (chunk: Buffer) => this.#take(chunk));
    this.process.stderr?.on('data', (chunk: Buffer) => {
      this.errors += chunk.toString();
    });
    this.exited = new Promise((resolve) => {
      this.process.once('close', (code, signal) => {
        this.#over = true;
        for (const tell of this.#waiting.splice(0)) tell(undefined);
        resolve({ code, signal });
      });
    });
  }

  /** A helper that has become a user. */
  static async of(uid: number, space: string, options: HelperOptions = {}): Promise<FsHelper> {
    const helper = new FsHelper(options);
    const ready = await helper.next();
    helper.send({ kind: 'become', uid, space });
    const dropped = await helper.next();
    if (ready?.kind !== 'ready' || dropped?.kind !== 'dropped') {
      throw new Error(`not a helper: ${JSON.stringify([ready, dropped])} ${helper.errors}`);
    }
    return helper;
  }

  get pid(): number {
    return this.process.pid ?? -1;
  }

  send(message: unknown): void {
    this.write(frameOf(message));
  }

  write(bytes: Buffer): void {
    this.process.stdin?.write(bytes);
  }

  /** The next message; undefined once it is over. */
  next(): Promise<Said | undefined> {
    const said = this.#said.shift();
    if (said !== undefined || this.#over) return Promise.resolve(said);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** One call; its result, the code of its refusal, or undefined when the helper ended instead. */
  async call(verb: string, fields: Readonly<Record<string, unknown>> = {}): Promise<unknown> {
    this.#id += 1;
    const id = this.#id;
    this.send({ kind: 'call', id, verb, ...fields });
    const said = await this.next();
    if (said === undefined) return undefined;
    if (said['id'] !== id) throw new Error(`an answer to another call: ${JSON.stringify(said)}`);
    return said.kind === 'result' ? said['result'] : said['code'];
  }

  list(path: string, entriesMax = 2_000): Promise<unknown> {
    return this.call('list', { path, entriesMax });
  }

  read(path: string, bytesMax = 262_144, probeBytes = 8_192): Promise<unknown> {
    return this.call('read', { path, bytesMax, probeBytes });
  }

  writeFile(path: string, content: string): Promise<unknown> {
    return this.call('write', { path, content });
  }

  delete(path: string): Promise<unknown> {
    return this.call('delete', { path });
  }

  reset(): Promise<unknown> {
    return this.call('reset');
  }

  repository(project: string, worktree: string | null = null): Promise<unknown> {
    return this.call('repository', { project, worktree });
  }

  scratch(clean: FsCleanRepository | null = null): Promise<unknown> {
    return this.call('scratch', { clean });
  }

  unregister(project: string, worktree: string, refs: readonly string[] = []): Promise<unknown> {
    return this.call('unregister', { project, worktree, refs });
  }

  place(path: string, project: string | null = null): Promise<unknown> {
    return this.call('place', { path, project });
  }

  clear(): Promise<unknown> {
    return this.call('clear');
  }

  /** Closes its input and waits for its end. */
  async end(): Promise<void> {
    this.process.stdin?.end();
    await this.exited;
  }

  async kill(): Promise<void> {
    this.process.kill('SIGKILL');
    await this.exited;
  }

  #take(chunk: Buffer): void {
    this.#received = Buffer.concat([this.#received, chunk]);
    while (this.#received.length >= 4) {
      const length = this.#received.readUInt32BE(0);
      if (length === 0 || length > fsFrameBytesMax) throw new Error(`a frame of ${length} bytes`);
      if (this.#received.length < 4 + length) return;
      const said = JSON.parse(this.#received.subarray(4, 4 + length).toString()) as Said;
      this.#received = this.#received.subarray(4 + length);
      const waiting = this.#waiting.shift();
      if (waiting) waiting(said);
      else this.#said.push(said);
    }
  }
}
