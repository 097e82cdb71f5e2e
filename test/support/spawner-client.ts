/**
 * The spawner, driven over its socket by a test, under production rights and in a pid namespace of its own, so that
 * a mistake can't reach the machine. Written from wire.h, apart from the worker's own client, so that the two don't
 * share a mistake.
 */
import { type ChildProcess, execFileSync, fork } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { compileCache } from './compile-cache.ts';
import { processesOf, treeOf } from './processes.ts';
import type { StandInNews, StandInRequest } from './spawner-stand-in.ts';
import { eventually } from './wait.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
for (const what of [[], ['--attacks'], ['--sanitize']]) execFileSync(join(root, 'helper/native/build.sh'), what);

export const built = (name: string): string => join(root, 'dist/test', name);
export const attack = built('attack');
export const native = join(root, 'dist/helper/native/workspace-runner-native');
export const sanitized = join(root, 'dist/sanitize/workspace-runner-native');

export const header = readFileSync(join(root, 'helper/native/wire.h'), 'utf8');
/** A constant of wire.h. */
export const wire = (name: string): number => {
  const value = new RegExp(`^#define ${name} (\\d+)`, 'm').exec(header)?.[1];
  if (value === undefined) throw new Error(`wire.h has no ${name}`);
  return Number(value);
};

export const production = [
  'setpriv',
  '--bounding-set=-all,+setuid,+setgid,+chown',
  '--inh-caps=-all',
  '--no-new-privs',
] as const;

export interface Plan {
  readonly uid: number;
  readonly args: readonly string[];
  readonly program?: string;
  readonly space?: string;
  readonly directory?: string;
  readonly env?: readonly string[];
  readonly timeLimitMs?: number;
  readonly outputCap?: number;
  readonly maxProcesses?: number;
  readonly maxFileSize?: number;
  readonly maxAddress?: number;
  readonly graceMs?: number;
  /** STDIO_*; empty unless given. */
  readonly stdio?: number;
  readonly terminal?: { readonly rows: number; readonly cols: number };
}

export interface Message {
  readonly kind: number;
  readonly body: Buffer;
}

export interface Exit {
  readonly reason: number;
  readonly flags: number;
  readonly code: number;
  readonly signal: number;
  readonly maxResident: number;
  readonly cpuUs: number;
  readonly timeUs: number;
}

export interface Outcome {
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  readonly failed?: { readonly step: number; readonly errno: number };
  readonly incomplete?: Exit;
  readonly exit?: Exit;
  readonly ended: boolean;
  /** Whether the connection ended with an end of file and not with a reset. */
  readonly clean: boolean;
}

export const message = (kind: number, body: Buffer = Buffer.alloc(0)): Buffer => {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(kind, 0);
  head.writeUInt32BE(body.length, 4);
  return Buffer.concat([head, body]);
};

/** The body of MSG_RUN. */
export const planBody = (plan: Plan, space: string): Buffer => {
  const env = plan.env ?? ['PATH=/usr/bin:/bin'];
  const strings = [plan.program ?? plan.args[0] ?? '', plan.space ?? space, plan.directory ?? '', ...plan.args, ...env];
  const text = Buffer.concat(strings.map((value) => Buffer.from(`${value}\0`)));
  const fixed = Buffer.alloc(wire('RUN_FIXED'));
  fixed.writeUInt32BE(wire('WIRE_VERSION'), 0);
  fixed.writeUInt32BE(plan.uid, 4);
  fixed.writeBigUInt64BE(BigInt(plan.timeLimitMs ?? 0), 8);
  fixed.writeBigUInt64BE(BigInt(plan.outputCap ?? 262_144), 16);
  fixed.writeBigUInt64BE(BigInt(plan.maxProcesses ?? 128), 24);
  fixed.writeBigUInt64BE(BigInt(plan.maxFileSize ?? 0), 32);
  fixed.writeBigUInt64BE(BigInt(plan.maxAddress ?? 0), 40);
  fixed.writeUInt32BE(plan.graceMs ?? 0, 48);
  fixed.writeUInt32BE(plan.args.length, 52);
  fixed.writeUInt32BE(env.length, 56);
  fixed.writeUInt32BE(text.length, 60);
  const { terminal } = plan;
  fixed.writeUInt32BE(plan.stdio ?? wire(terminal === undefined ? 'STDIO_EMPTY' : 'STDIO_TERMINAL'), 64);
  fixed.writeUInt16BE(terminal?.rows ?? 0, 68);
  fixed.writeUInt16BE(terminal?.cols ?? 0, 70);
  return Buffer.concat([fixed, text]);
};

const exitOf = (body: Buffer): Exit => ({
  reason: body.readUInt32BE(0),
  flags: body.readUInt32BE(4),
  code: body.readUInt32BE(8),
  signal: body.readUInt32BE(12),
  maxResident: Number(body.readBigUInt64BE(16)),
  cpuUs: Number(body.readBigUInt64BE(24)),
  timeUs: Number(body.readBigUInt64BE(32)),
});

/** One connection: what it sent so far, and what it came to. */
export class Connection {
  readonly outcome: Promise<Outcome>;
  readonly socket: Socket;
  stdout: Buffer[] = [];
  /** Bytes of standard input that the spawner's side has told of. */
  taken = 0;
  /** MSG_STARTED has come. */
  started = false;
  /** Streams whose end was told. */
  readonly ends: number[] = [];
  #incomplete: Exit | undefined;
  #changed: (() => void)[] = [];

  constructor(socket: Socket) {
    this.socket = socket;
    this.outcome = new Promise((resolve) => {
      const stderr: Buffer[] = [];
      let rest: Buffer = Buffer.alloc(0);
      let failed: Outcome['failed'];
      let exit: Exit | undefined;
      let ended = false;
      let clean = false;
      socket.on('data', (chunk: Buffer) => {
        rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
        while (rest.length >= 8 && rest.length >= 8 + rest.readUInt32BE(4)) {
          const kind = rest.readUInt32BE(0);
          const body = rest.subarray(8, 8 + rest.readUInt32BE(4));
          rest = rest.subarray(8 + body.length);
          if (failed !== undefined || exit !== undefined || ended) throw new Error('a message after the last one');
          if (this.ends.includes(kind)) throw new Error('output after its end');
          if (body.length === 0 && (kind === wire('MSG_STDOUT') || kind === wire('MSG_STDERR'))) this.ends.push(kind);
          else if (kind === wire('MSG_STDOUT')) this.stdout.push(Buffer.from(body));
          else if (kind === wire('MSG_STDERR')) stderr.push(Buffer.from(body));
          else if (kind === wire('MSG_FAILED')) failed = { step: body.readUInt32BE(0), errno: body.readUInt32BE(4) };
          else if (kind === wire('MSG_INCOMPLETE')) this.#incomplete = exitOf(body);
          else if (kind === wire('MSG_EXIT')) exit = exitOf(body);
          else if (kind === wire('MSG_ENDED')) ended = true;
          else if (kind === wire('MSG_STARTED')) this.started = true;
          else if (kind === wire('MSG_STDIN_TAKEN')) this.taken += body.readUInt32BE(0);
          else throw new Error(`an unknown message ${kind}`);
        }
        for (const changed of this.#changed.splice(0)) changed();
      });
      socket.on('end', () => {
        clean = true;
        socket.end();
      });
      socket.on('error', () => undefined);
      socket.on('close', () => {
        resolve({
          stdout: Buffer.concat(this.stdout),
          stderr: Buffer.concat(stderr),
          ...(failed === undefined ? {} : { failed }),
          ...(this.#incomplete === undefined ? {} : { incomplete: this.#incomplete }),
          ...(exit === undefined ? {} : { exit }),
          ended,
          clean,
        });
        for (const changed of this.#changed.splice(0)) changed();
      });
    });
  }

  /** Waits until the tool has written this. */
  async said(text: string, limitMs = 10_000): Promise<void> {
    const end = performance.now() + limitMs;
    while (!Buffer.concat(this.stdout).includes(text)) {
      const left = end - performance.now();
      if (left <= 0 || this.socket.destroyed) throw new Error(`the tool has not said ${JSON.stringify(text)}`);
      await this.#next(left);
    }
  }

  async incomplete(limitMs: number): Promise<Exit> {
    const end = performance.now() + limitMs;
    while (this.#incomplete === undefined) {
      const left = end - performance.now();
      if (left <= 0 || this.socket.destroyed) throw new Error('MSG_INCOMPLETE did not come');
      await this.#next(left);
    }
    return this.#incomplete;
  }

  #next(limitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, limitMs);
      this.#changed.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  stop(): void {
    this.socket.write(message(wire('MSG_STOP')));
  }

  /** Names the user of a helper. */
  user(uid: number): void {
    const body = Buffer.alloc(4);
    body.writeUInt32BE(uid, 0);
    this.socket.write(message(wire('MSG_USER'), body));
  }

  resize(rows: number, cols: number): void {
    const body = Buffer.alloc(4);
    body.writeUInt16BE(rows, 0);
    body.writeUInt16BE(cols, 2);
    this.socket.write(message(wire('MSG_RESIZE'), body));
  }

  signal(number: number): void {
    const body = Buffer.alloc(4);
    body.writeUInt32BE(number, 0);
    this.socket.write(message(wire('MSG_SIGNAL'), body));
  }

  /** Sends a piece of standard input, whatever the window; none = its end. */
  input(bytes: Uint8Array | string): void {
    this.socket.write(message(wire('MSG_STDIN'), Buffer.from(bytes)));
  }

  /** Waits for what the spawner's side is to say. */
  async until(what: string, said: () => boolean, limitMs = 10_000): Promise<void> {
    const end = performance.now() + limitMs;
    while (!said()) {
      const left = end - performance.now();
      if (left <= 0 || this.socket.destroyed) throw new Error(`it did not come: ${what}`);
      await this.#next(left);
    }
  }

  /** Waits until so many bytes of standard input were taken. */
  async took(bytes: number, limitMs = 10_000): Promise<void> {
    const end = performance.now() + limitMs;
    while (this.taken < bytes) {
      const left = end - performance.now();
      if (left <= 0 || this.socket.destroyed) throw new Error(`only ${this.taken} bytes were taken`);
      await this.#next(left);
    }
  }
}

export interface SpawnerOptions {
  readonly program?: string;
  /** Put between the production rights and the spawner. */
  readonly wrapper?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Another folder than a new one. */
  readonly folder?: string;
  /** Somebody else removes the folder. */
  readonly keepFolder?: boolean;
  /** Other rights than those of production. */
  readonly rights?: readonly string[];
}

/** A spawner and its worker's stand-in. */
export class Spawner {
  readonly folder: string;
  log = '';
  readonly exited: Promise<{ code: number | null; signal: string | null }>;
  /** Host's view of the pid. */
  pid = 0;
  readonly #standIn: ChildProcess;
  readonly #ready: Promise<void>;
  readonly #keepFolder: boolean;
  readonly #waiting = new Map<number, { take: (socket: Socket) => void; refuse: (error: Error) => void }>();
  #nextId = 1;

  private constructor(options: SpawnerOptions) {
    this.folder = options.folder ?? Spawner.newFolder();
    const spawner = [options.program ?? native, 'spawner', join(this.folder, 'socket/s'), join(this.folder, 'lock')];
    const standIn = fileURLToPath(new URL('spawner-stand-in.ts', import.meta.url));
    const namespace = [
      '--pid',
      '--fork',
      '--mount-proc',
      '--kill-child',
      built('first-process'),
      ...(options.rights === undefined ? production : ['setpriv', ...options.rights]),
    ];
    this.#keepFolder = options.keepFolder ?? false;
    this.#standIn = fork(standIn, [...(options.wrapper ?? []), ...spawner], {
      execPath: 'unshare',
      execArgv: [...namespace, process.execPath],
      env: { ...process.env, ...compileCache, ASAN_OPTIONS: 'detect_leaks=0', ...options.env },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    this.#standIn.on('error', () => undefined);
    let exited: (how: { code: number | null; signal: string | null }) => void = () => undefined;
    this.exited = new Promise((resolve) => {
      exited = resolve;
    });
    this.#ready = new Promise((resolve, reject) => {
      this.#standIn.once('exit', (code, signal) => {
        reject(new Error('the stand-in of the worker ended'));
        exited({ code, signal });
      });
      this.#standIn.on('message', (news: StandInNews, socket?: unknown) => {
        if (news.tell === 'ready') resolve();
        if (news.tell === 'log') this.log += news.text;
        if (news.tell === 'connected') this.#take(news.id)?.take(socket as Socket);
        if (news.tell === 'refused') this.#take(news.id)?.refuse(new Error(news.code));
        if (news.tell === 'exit') {
          reject(new Error(`the spawner ended: ${this.log}`));
          exited(news);
        }
      });
    });
    this.#ready.catch(() => undefined);
  }

  static newFolder(): string {
    const folder = mkdtempSync(join(tmpdir(), 'spawner-test-'));
    chmodSync(folder, 0o711);
    mkdirSync(join(folder, 'socket'), { mode: 0o700 });
    return folder;
  }

  static async start(options: SpawnerOptions = {}): Promise<Spawner> {
    const spawner = new Spawner(options);
    await spawner.#ready;
    spawner.pid = spawner.#find((real) => real === 0)[0] ?? 0;
    return spawner;
  }

  /** Starts one that is expected to refuse; resolves to what it said. */
  static async refused(options: SpawnerOptions): Promise<{ code: number | null; log: string }> {
    const spawner = new Spawner(options);
    const whenReady = spawner.#ready.then(
      () => undefined,
      () => spawner.exited,
    );
    const how = await Promise.race([spawner.exited, whenReady]);
    const { log } = spawner;
    await spawner.stop();
    if (how === undefined) throw new Error('it was not refused');
    return { code: how.code, log };
  }

  #take(id: number) {
    const found = this.#waiting.get(id);
    this.#waiting.delete(id);
    return found;
  }

  #find(wanted: (realUid: number) => boolean): number[] {
    return treeOf(this.#standIn.pid ?? 0)
      .filter(
        ({ command, uids }) =>
          / spawner \/\S+ \/\S+$/.test(command) && /native spawner/.test(command) && wanted(uids[0] ?? 0),
      )
      .filter(({ command }) => !command.includes('spawner-stand-in') && !command.startsWith('unshare'))
      .map(({ pid }) => pid);
  }

  /** The supervisors' pids, as the host counts. */
  supervisors(): number[] {
    return this.#find((real) => real >= wire('KILLER_UID_FIRST'));
  }

  #ask(request: StandInRequest): void {
    this.#standIn.send(request, () => undefined); // it may just have died
  }

  async socket(): Promise<Socket> {
    const id = this.#nextId++;
    return await new Promise((resolve, reject) => {
      this.#waiting.set(id, { take: resolve, refuse: reject });
      this.#ask({ ask: 'connect', id });
    });
  }

  async connect(): Promise<Connection> {
    return new Connection(await this.socket());
  }

  spaceOf(uid: number): string {
    return join(this.folder, `u${uid}`);
  }

  makeSpace(uid: number): string {
    const space = this.spaceOf(uid);
    for (const folder of ['home', 'tmp']) mkdirSync(join(space, folder), { recursive: true });
    for (const folder of [join(space, 'home'), join(space, 'tmp'), space]) {
      chmodSync(folder, 0o700);
      chownSync(folder, uid, uid);
    }
    return space;
  }

  async start(plan: Plan): Promise<Connection> {
    const connection = await this.connect();
    connection.socket.write(message(wire('MSG_RUN'), planBody(plan, this.spaceOf(plan.uid))));
    return connection;
  }

  /** Starts a helper: undropped, in `/`, its user not named yet. */
  async helper(args: readonly string[], more: Partial<Plan> = {}): Promise<Connection> {
    const connection = await this.connect();
    const plan = { uid: 0, args, space: '', outputCap: Number.MAX_SAFE_INTEGER, ...more };
    connection.socket.write(message(wire('MSG_HELPER'), planBody(plan, '')));
    return connection;
  }

  async run(plan: Plan): Promise<Outcome> {
    return await (await this.start(plan)).outcome;
  }

  async shell(uid: number, script: string, more: Partial<Plan> = {}): Promise<Outcome> {
    return await this.run({ uid, args: ['/bin/sh', '-c', script], ...more });
  }

  async end(uid: number): Promise<Outcome> {
    const connection = await this.connect();
    const body = Buffer.alloc(4);
    body.writeUInt32BE(uid, 0);
    connection.socket.write(message(wire('MSG_END'), body));
    return await connection.outcome;
  }

  closeLifeline(): void {
    this.#ask({ ask: 'close-lifeline' });
  }

  /** The worker's stand-in, as the host counts. */
  standInPid(): number {
    return (
      treeOf(this.#standIn.pid ?? 0).find(({ command }) => /^\S*node\S* .*spawner-stand-in/.test(command))?.pid ?? 0
    );
  }

  /** Ends it, and waits until nothing of the namespace is left: a test that leaves something fails here. */
  async stop(limitMs = 8_000): Promise<void> {
    if (this.#standIn.exitCode === null && this.#standIn.signalCode === null) {
      const gone = new Promise<boolean>((resolve) => {
        this.#standIn.once('exit', () => resolve(true));
        setTimeout(() => resolve(false), limitMs).unref();
      });
      if (this.#standIn.connected) this.#ask({ ask: 'exit' });
      if (!(await gone)) {
        const seen = treeOf(this.#standIn.pid ?? 0).map(({ state, uids, command }) => `${state} ${uids[0]} ${command}`);
        this.#standIn.kill('SIGKILL');
        throw new Error(`not all of the namespace ended: ${seen.join('; ')}`);
      }
    }
    if (!this.#keepFolder) rmSync(this.folder, { recursive: true, force: true });
    if (/Sanitizer|runtime error/.test(this.log)) throw new Error(this.log);
  }
}

/** Nothing of this uid is left on the whole machine, zombies included. Looks once: the spawner has said so. */
export const left = (uid: number): string[] => processesOf(uid).map(({ state, command }) => `${state} ${command}`);

/**
 * The user's own processes. Whoever ends them has the user's uid only as one of its own, and may still be on the way out:
 * where a supervisor was killed, the spawner has killers beside those of the one that was asked.
 */
export const ownLeft = (uid: number): string[] =>
  processesOf(uid)
    .filter(({ uids }) => uids[0] === uid)
    .map(({ state, command }) => `${state} ${command}`);

export const noneLeft = async (uid: number, limitMs = 15_000): Promise<void> => {
  await eventually(`no process of ${uid}`, () => processesOf(uid).length === 0, limitMs);
};
