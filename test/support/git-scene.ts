import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { type BareRepository, plainGitEnvironment } from './bare-repository.ts';
import { copyWork, type WorkPlace } from './copied-work.ts';
import { CountingServer } from './counting-server.ts';
import { GitServer } from './git-server.ts';
import type { Answer } from './http.ts';
import { Service } from './service.ts';
import { homeOf, spaceOf } from './user.ts';

/** The routes that bring repositories in and out. */
export type RepoRoute = 'clone' | 'worktree' | 'push' | 'agent-worktree' | 'agent-push';

type Fields = Readonly<Record<string, unknown>>;

/** Who commits, for git run by users. */
export const identity = ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.invalid'] as const;

/** One user with a clone, or with a worktree of it too. */
export interface Work {
  readonly user: number;
  readonly repository: BareRepository;
  /** Its folder beneath `repos`. */
  readonly project: string;
  readonly conversation: string;
  /** Folder of the worktree, relative to the home. */
  readonly folder: string;
  /** `chat/<conversation>` */
  readonly branch: string;
}

/** A service, a git server that it may use, and a server that nobody may reach. */
export class GitScene {
  readonly service: Service;
  readonly server: GitServer;
  readonly counting: CountingServer;
  #repositories = 0;
  #pattern: WorkPlace | undefined;

  private constructor(service: Service, server: GitServer, counting: CountingServer) {
    this.service = service;
    this.server = server;
    this.counting = counting;
  }

  static async start(settings: Readonly<Record<string, string>> = {}): Promise<GitScene> {
    const [server, counting] = [await GitServer.start(), await CountingServer.start()];
    const service = await Service.start({ settings: { RUNNER_ALLOWED_GIT_HOSTS: server.host, ...settings } });
    return new GitScene(service, server, counting);
  }

  async stop(): Promise<void> {
    await this.server.stop();
    await this.counting.stop();
    await this.service.stop();
  }

  /** Asks a route with the credentials of the git server, unless the fields have an `env` of their own. */
  ask(route: RepoRoute, fields: Fields, key?: string): Promise<Answer> {
    const headers = key === undefined ? {} : { 'idempotency-key': key };
    return this.service.client.post(`/v1/repo/${route}`, { env: this.server.env(), ...fields }, headers);
  }

  /** Makes a private repository with one commit on main, under a name that no other has. */
  repository(): { readonly repository: BareRepository; readonly path: string; readonly project: string } {
    this.#repositories += 1;
    const path = `group/project-${this.#repositories}`;
    const repository = this.server.repository(path);
    repository.commit('main', { 'README.md': 'first\n' }, 'first');
    return { repository, path, project: path.replaceAll('/', '__') };
  }

  /** Has a user clone a repository that was made for it. */
  async cloned(user: number): Promise<Work> {
    const { repository, path, project } = this.repository();
    done(await this.ask('clone', { user, url: this.server.url(`${path}.git`) }));
    return beside({ user, repository, project });
  }

  /** Has a user clone a repository and make a worktree of it. */
  async worked(user: number): Promise<Work> {
    const work = await this.cloned(user);
    done(await this.worktree(work));
    return work;
  }

  /** The same, prepared: a copy of what plain git has once made, so that little time goes into it. */
  prepared(user: number): Promise<Work> {
    return this.#copied(user, 'clone and worktree');
  }

  /** The clone alone, prepared. */
  preparedClone(user: number): Promise<Work> {
    return this.#copied(user, 'clone');
  }

  /** Another worktree of a clone, by plain git. */
  async preparedBeside(work: Work): Promise<Work> {
    const made = beside(work);
    const { user, project, folder, branch } = made;
    await this.git(user, `repos/${project}`, 'worktree', 'add', '-q', '-b', branch, this.at(user, folder));
    return made;
  }

  async #copied(user: number, what: Parameters<typeof copyWork>[2]): Promise<Work> {
    this.#pattern ??= this.#byPlainGit();
    const { status, text } = await this.service.exec(user, 'git', ['--version']);
    expect(status, `the user has a space: ${text}`).toBe(200);
    const work = beside({ user, ...this.repository() });
    expect(work.repository.tip('main'), 'the same commit').toBe(this.#pattern.work.repository.tip('main'));
    copyWork(this.#pattern, { home: this.at(user, ''), work }, what);
    return work;
  }

  #byPlainGit(): WorkPlace {
    const { repository, path, project } = this.repository();
    const work = beside({ user: 0, repository, project });
    const home = join(this.service.folder, 'pattern');
    const clone = join(home, 'repos', project);
    // Its logs would name where the pattern came from.
    const git = (...args: readonly string[]) =>
      execFileSync('git', ['-c', 'core.logAllRefUpdates=false', ...args], { env: plainGitEnvironment, stdio: 'pipe' });
    git('clone', '-q', '--depth=1', '--no-tags', `file://${repository.folder}`, clone);
    git('-C', clone, 'config', 'remote.origin.url', this.server.url(`${path}.git`));
    git('-C', clone, 'worktree', 'add', '-q', '-b', work.branch, join(home, work.folder));
    return { home, work };
  }

  worktree({ user, project, conversation }: Work, more: Fields = {}, key?: string): Promise<Answer> {
    return this.ask('worktree', { user, project, conversation, baseBranch: 'main', ...more }, key);
  }

  push({ user, project, conversation }: Work, more: Fields = {}, key?: string): Promise<Answer> {
    return this.ask('push', { user, project, conversation, ...more }, key);
  }

  /** Runs git as a user, expects it to succeed, and returns what it says, without the last line break. */
  async git(user: number, dir: string, ...args: readonly string[]): Promise<string> {
    const { status, body, text } = await this.service.exec(user, 'git', args, { dir });
    expect([status, body.exitCode], `git ${args.join(' ')}: ${text}`).toEqual([200, 0]);
    return (body.stdout ?? '').replace(/\n$/, '');
  }

  /** Runs a script as a user and expects it to succeed. Needs the tool `sh`. */
  async sh(user: number, dir: string, script: string, env: readonly string[] = []): Promise<string> {
    const { status, body, text } = await this.service.exec(user, 'sh', ['-ec', script], { dir, env });
    expect([status, body.exitCode], `${script}: ${text}`).toEqual([200, 0]);
    return (body.stdout ?? '').replace(/\n$/, '');
  }

  /** One more commit in a worktree, made by its user; returns its id. */
  async commit({ user, folder }: Pick<Work, 'user' | 'folder'>, message = 'work'): Promise<string> {
    await this.git(user, folder, ...identity, 'commit', '--quiet', '--allow-empty', '-m', message);
    return this.git(user, folder, 'rev-parse', 'HEAD');
  }

  /** Absolute path of something in a user's home. */
  at(user: number, path: string): string {
    return join(homeOf(this.service, user), path);
  }

  /** What is in the folders that a workflow could leave something in. */
  leftIn(user: number): Readonly<Record<'space' | 'tmp' | 'repos', readonly string[]>> {
    const space = spaceOf(this.service, user);
    return {
      space: readdirSync(space).sort(),
      tmp: readdirSync(join(space, 'tmp')),
      repos: readdirSync(join(space, 'home/repos')).sort(),
    };
  }
}

/** What `leftIn` says of a space with these clones, in which nothing is left over. */
export const clean = (...repos: readonly string[]) => ({ space: ['home', 'tmp'], tmp: [], repos });

/** The same clone's, for another conversation. */
export const beside = ({ user, repository, project }: Pick<Work, 'user' | 'repository' | 'project'>): Work => {
  const conversation = randomUUID();
  const [folder, branch] = [`work/${conversation}/${project}`, `chat/${conversation}`];
  return { user, repository, project, conversation, folder, branch };
};

/** Expects a success, and returns the body. */
export const done = ({ status, body, text }: Answer): Answer['body'] => {
  expect([status, body.ok], text).toEqual([200, true]);
  return body;
};

/** Expects that git failed, as git does, and returns the body. */
export const failed = ({ status, body, text }: Answer): Answer['body'] => {
  expect([status, body.ok], text).toEqual([200, false]);
  return body;
};

/** Status and code of a refusal. */
export const refusal = ({ status, body }: Answer): readonly [number, string | undefined] => [status, body.error];
