import { mkdtemp, rm } from 'node:fs/promises';
import type { Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import pino, { type Logger } from 'pino';
import { openAudit } from '../../../gateway/audit.ts';
import { Authentication } from '../../../gateway/auth.ts';
import type { Tokens } from '../../../gateway/config.ts';
import { Connections } from '../../../gateway/connections.ts';
import { drain } from '../../../gateway/drain.ts';
import { listen } from '../../../gateway/http-server.ts';
import { makeServer, type RouteParts } from '../../../gateway/routes.ts';
import { WorkerLink } from '../../../gateway/worker-link.ts';
import type { AuditQueue, WriteBytes } from '../../../protocol/audit.ts';
import { operations } from '../../../protocol/operations/index.ts';
import { type FakeLink, FakeWorker } from './fake-worker.ts';
import { Mailbox } from './mailbox.ts';

export const token = 'a-valid-service-token-of-enough-length';
export const bearer = { Authorization: `Bearer ${token}` };

/** One line of the audit. */
export type AuditLine = Record<string, unknown>;

/** What a test may have differently. */
export interface Overrides extends Partial<Pick<RouteParts, 'table' | 'timeouts' | 'deadlineOf' | 'bodyBytesMax'>> {
  readonly tokens?: Tokens;
  readonly stallMs?: number;
  readonly outputBytesMax?: number;
  readonly clock?: () => number;
  readonly writeAudit?: WriteBytes;
  /** False: the worker is not there yet. */
  readonly worker?: boolean;
}

/** A gateway in this process with a worker that the test plays. */
export class GatewayUnderTest {
  readonly audit = new Mailbox<AuditLine>();
  readonly stage = { draining: false };
  readonly connections: Connections;
  readonly link: WorkerLink;
  readonly worker: FakeWorker;
  readonly log: Logger;
  /** All that was logged. */
  logged = '';
  readonly audits: AuditQueue;
  /** Resolves when the audit's reader is gone. */
  readonly auditGone: Promise<void>;
  port = 0;
  #server: Server | undefined;
  readonly #folder: string;
  readonly #parts: RouteParts;

  private constructor(folder: string, overrides: Overrides) {
    this.#folder = folder;
    const socketPath = join(folder, 'worker.sock');
    this.worker = new FakeWorker(socketPath);
    const sink = new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        this.logged += chunk.toString();
        done();
      },
    });
    this.log = pino({ level: 'debug' }, sink);
    const capture: WriteBytes = (bytes, done) => {
      const lines = Buffer.from(bytes).toString().trimEnd().split('\n');
      for (const line of lines) this.audit.put(JSON.parse(line) as AuditLine);
      setImmediate(done, null, bytes.length);
    };
    const { promise, resolve } = Promise.withResolvers<void>();
    this.auditGone = promise;
    this.audits = openAudit(this.log, resolve, overrides.writeAudit ?? capture);
    const { outputBytesMax = 262_144, clock } = overrides;
    this.link = new WorkerLink({
      socketPath,
      outputBytesMax,
      audit: this.audits,
      log: this.log,
      ...(clock ? { clock } : {}),
    });
    this.connections = new Connections(overrides.stallMs ?? 30_000);
    this.#parts = {
      table: overrides.table ?? operations,
      authentication: new Authentication(overrides.tokens ?? { current: token, previous: undefined }),
      healthy: () => this.link.ready && !this.stage.draining,
      bodyBytesMax: overrides.bodyBytesMax ?? 1_048_576,
      sizes: { writeBytes: 262_144 },
      deadlineOf: overrides.deadlineOf ?? (() => 60_000),
      connections: this.connections,
      link: this.link,
      audit: this.audits,
      log: this.log,
      stage: this.stage,
      ...(overrides.timeouts ? { timeouts: overrides.timeouts } : {}),
    };
  }

  /** Starts both; resolves when the link is up. */
  static async start(overrides: Overrides = {}): Promise<GatewayUnderTest> {
    const folder = await mkdtemp(join(tmpdir(), 'gateway-'));
    const self = new GatewayUnderTest(folder, overrides);
    if (overrides.worker !== false) {
      await self.worker.listen();
      await self.link.whenReady();
    }
    self.#server = await makeServer(self.#parts);
    self.port = Number((await listen(self.#server, { host: '127.0.0.1', port: 0 })).split(':')[1]);
    return self;
  }

  /** The worker's end of the link that is up now. */
  workerLink(): Promise<FakeLink> {
    return this.worker.links.next();
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** POST with the token. */
  post(
    path: string,
    body: string | Uint8Array<ArrayBuffer> | object,
    headers: Record<string, string> = {},
  ): Promise<Response> {
    return fetch(this.url + path, {
      method: 'POST',
      headers: { ...bearer, ...headers },
      body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
    });
  }

  /** How many connections are open. */
  connectionCount(): Promise<number> {
    return new Promise((resolve, reject) =>
      this.#server?.getConnections((error, count) => (error ? reject(error) : resolve(count))),
    );
  }

  /** As the process does it on SIGTERM, but in this process. */
  drain(limitMs: number): Promise<void> {
    if (this.#server === undefined) throw new Error('not started');
    return drain({
      server: this.#server,
      connections: this.connections,
      link: this.link,
      log: this.log,
      stage: this.stage,
      limitMs,
    });
  }

  /** Ends everything. */
  async stop(): Promise<void> {
    this.link.stop();
    this.#server?.close();
    this.#server?.closeAllConnections();
    await this.worker.close();
    await rm(this.#folder, { recursive: true, force: true });
  }
}
