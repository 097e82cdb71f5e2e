import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { BareRepository } from '../support/bare-repository.ts';
import { GitServer } from '../support/git-server.ts';

/** The one repository that all rounds clone and push to: each knows it by a name of its own. */
export class Upstream {
  static #now: Upstream | undefined;
  readonly #server: GitServer;
  readonly #repository: BareRepository;

  private constructor(server: GitServer) {
    this.#server = server;
    this.#repository = server.repository('upstream', 'public');
    this.#repository.commit('main', { 'first.txt': 'first\n', 'last.txt': 'last\n' });
    server.alias(/^\/chaos\/[a-z0-9-]+\.git\//, '/upstream.git/');
  }

  /** The one that runs. */
  static get now(): Upstream {
    if (Upstream.#now === undefined) throw new Error('there is no upstream');
    return Upstream.#now;
  }

  static async start(): Promise<Upstream> {
    Upstream.#now = new Upstream(await GitServer.start());
    return Upstream.#now;
  }

  /** As `RUNNER_ALLOWED_GIT_HOSTS` names it. */
  get host(): string {
    return this.#server.host;
  }

  get env(): string[] {
    return this.#server.env();
  }

  url(canary: string): string {
    return this.#server.url(`chaos/${canary}.git`);
  }

  has(branch: string): boolean {
    return existsSync(join(this.#repository.folder, 'refs/heads', branch));
  }

  async stop(): Promise<void> {
    Upstream.#now = undefined;
    await this.#server.stop();
  }
}

/** The folder of a clone. */
export const projectOf = (canary: string): string => `chaos__${canary}`;

/** An id that only this canary has. */
export const idOf = (canary: string): string => {
  const hex = createHash('sha256').update(canary).digest('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join('-');
};
