import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { BareRepository } from './bare-repository.ts';
import { gitHttpBackend } from './git-http-backend.ts';

/** One request as the server saw it. */
export interface SeenRequest {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly credentials: 'none' | 'wrong' | 'right';
  readonly headers: IncomingHttpHeaders;
}

/** A request that is not answered until it is released, or its client is gone. */
export interface Hold {
  /** Resolves when such a request is there and waits. */
  readonly reached: Promise<void>;
  /** Resolves when the client of it has gone away. */
  readonly left: Promise<void>;
  /** How many requests have waited. */
  readonly count: number;
  release(): void;
}

/**
 * Where a held request stands: nothing was done for it yet; all was done and nothing is answered; half of the answer
 * is sent.
 */
type HoldPoint = 'before' | 'done' | 'half';

type Handler = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;

interface HoldOrder {
  readonly matches: (seen: SeenRequest) => boolean;
  readonly point: HoldPoint;
  readonly wait: (response: ServerResponse) => Promise<void>;
}

const name = 'tester';

const askpass = `#!/bin/sh
case $1 in
Username*) echo ${name} ;;
*) printf '%s\\n' "$TEST_GIT_TOKEN" ;;
esac
`;

/** A self-signed certificate for this machine's own addresses. */
const makeCertificate = (folder: string): { key: Buffer; cert: Buffer } => {
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')];
  execFileSync(
    'openssl',
    // biome-ignore format: one option a line says less
    ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj', '/CN=localhost',
      '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost', '-keyout', key, '-out', cert],
    { stdio: 'pipe' },
  );
  chmodSync(key, 0o600);
  chmodSync(cert, 0o644);
  return { key: readFileSync(key), cert: readFileSync(cert) };
};

/** A real git server: https with a certificate of its own, `git http-backend` behind it, a password for what is private. */
export class GitServer {
  /** The password that private repositories ask for. */
  readonly token = `token-${randomBytes(15).toString('hex')}`;
  readonly folder: string;
  readonly port: number;
  /** Everything that was asked of it. */
  readonly seen: SeenRequest[] = [];
  readonly #server: Server;
  readonly #open = new Set<string>();
  readonly #routes = new Map<string, Handler>();
  readonly #holds: HoldOrder[] = [];
  readonly #aliases: [RegExp, string][] = [];

  private constructor(folder: string, server: Server) {
    this.folder = folder;
    this.#server = server;
    this.port = (server.address() as AddressInfo).port;
    server.on('request', (request, response) => {
      this.#serve(request, response).catch(() => response.destroy());
    });
  }

  static async start(): Promise<GitServer> {
    const folder = mkdtempSync('/tmp/runner-git-server-');
    chmodSync(folder, 0o755);
    mkdirSync(join(folder, 'repositories'), { mode: 0o700 });
    mkdirSync(join(folder, 'no-authorities'));
    writeFileSync(join(folder, 'askpass'), askpass);
    chmodSync(join(folder, 'askpass'), 0o755);
    const server = createServer(makeCertificate(folder));
    // git thinks for a while between two questions when the machine is busy.
    server.keepAliveTimeout = 120_000;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(0, '127.0.0.1', resolve);
    });
    return new GitServer(folder, server);
  }

  /** As `RUNNER_ALLOWED_GIT_HOSTS` names it. */
  get host(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** The file that makes its certificate a known one. */
  get certificate(): string {
    return join(this.folder, 'certificate.pem');
  }

  get askpass(): string {
    return join(this.folder, 'askpass');
  }

  /** What a request's `env` needs to be let in. */
  env(token = this.token): string[] {
    return [`GIT_ASKPASS=${this.askpass}`, `TEST_GIT_TOKEN=${token}`, `GIT_SSL_CAINFO=${this.certificate}`];
  }

  /** What git needs that is run without the service: the same, and not to read all of the system's authorities, which takes long. */
  plainEnv(): string[] {
    return [...this.env(), `GIT_SSL_CAPATH=${join(this.folder, 'no-authorities')}`];
  }

  url(path: string): string {
    return `https://${this.host}/${path}`;
  }

  /** Makes an empty repository, at `/<path>.git`. */
  repository(path: string, access: 'private' | 'public' = 'private'): BareRepository {
    if (access === 'public') this.#open.add(`/${path}.git/`);
    return new BareRepository(join(this.folder, 'repositories', `${path}.git`));
  }

  /** Answers everything beneath a path in another way. */
  route(prefix: string, handler: Handler): void {
    this.#routes.set(prefix, handler);
  }

  /** Answers it as ever. */
  unroute(prefix: string): void {
    this.#routes.delete(prefix);
  }

  /** Serves everything beneath paths of one form as if it were beneath another one. */
  alias(prefix: RegExp, target: string): void {
    this.#aliases.push([prefix, target]);
  }

  /** Redirects everything beneath a path to the same beneath another one, or to another server. */
  redirect(prefix: string, target: string, status = 302): void {
    this.route(prefix, (request, response) => {
      response.writeHead(status, { location: `${target}${request.url?.slice(prefix.length)}` }).end();
    });
  }

  /** Holds every request that fits, from now until it is released. */
  hold(matches: (seen: SeenRequest) => boolean, point: HoldPoint = 'done'): Hold {
    let count = 0;
    const [reached, left, released] = [signal(), signal(), signal()];
    const order: HoldOrder = {
      matches,
      point,
      wait: async (response) => {
        count += 1;
        response.once('close', left.give);
        reached.give();
        await Promise.race([released.given, left.given]);
      },
    };
    this.#holds.push(order);
    const release = (): void => {
      this.#holds.splice(this.#holds.indexOf(order), 1);
      released.give();
    };
    return {
      reached: reached.given,
      left: left.given,
      get count() {
        return count;
      },
      release,
    };
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
    rmSync(this.folder, { recursive: true, force: true });
  }

  #credentials({ headers }: IncomingMessage): SeenRequest['credentials'] {
    if (headers.authorization === undefined) return 'none';
    const right = `Basic ${Buffer.from(`${name}:${this.token}`).toString('base64')}`;
    return headers.authorization === right ? 'right' : 'wrong';
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    for (const [prefix, target] of this.#aliases) request.url = request.url?.replace(prefix, target);
    const path = request.url ?? '';
    const seen = {
      method: request.method ?? '',
      path,
      credentials: this.#credentials(request),
      headers: request.headers,
    };
    this.seen.push(seen);
    for (const [prefix, handler] of this.#routes) {
      if (path.startsWith(prefix)) return handler(request, response);
    }
    const open = [...this.#open].some((prefix) => path.startsWith(prefix));
    if (!open && seen.credentials !== 'right') {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="tests"' }).end();
      return;
    }
    const held = this.#holds.find(({ matches }) => matches(seen));
    if (held?.point === 'before') await held.wait(response);
    if (response.destroyed) return;
    const { status, headers, body } = await gitHttpBackend(join(this.folder, 'repositories'), request);
    if (held?.point === 'done') await held.wait(response);
    response.writeHead(status, { ...headers, 'content-length': String(body.length) });
    if (held?.point === 'half') {
      response.write(body.subarray(0, body.length / 2));
      await held.wait(response);
      response.end(body.subarray(body.length / 2));
    } else {
      response.end(body);
    }
  }
}

/** Something that is waited for and comes once. */
const signal = (): { readonly given: Promise<void>; readonly give: () => void } => {
  let give = (): void => undefined;
  const given = new Promise<void>((resolve) => {
    give = resolve;
  });
  return { given, give: () => give() };
};
