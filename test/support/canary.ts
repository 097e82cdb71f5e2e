import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { expect } from 'vitest';
import type { GitScene, Work } from './git-scene.ts';
import type { SeenRequest } from './git-server.ts';
import { spaceOf } from './user.ts';

/**
 * What a control must show: the trap's program ran with the token, a request went astray, a file has the token, what it
 * said, or what the git server saw.
 */
type Shown = 'runs' | 'reaches' | 'keeps' | RegExp | ((seen: readonly SeenRequest[], work: Target) => boolean);

/** Whose repository it is. */
type Target = Pick<Work, 'user' | 'repository'>;

/**
 * A trap in a user's repository or home, for a git that has the token.
 * In its scripts `$C` is a program of the user's that writes its environment down, `$E` a server that nobody may reach
 * (`127.0.0.1:<port>`), `$S` the allowed one, `$U` the URL of the repository, and `$F` where settings are made.
 */
export interface Trap {
  readonly name: string;
  readonly set: string;
  /** What a git that is told nothing does there, with the same environment: the proof that the trap is one. */
  readonly control?: readonly [script: string, shown: Shown];
}

/**
 * Says where it ran and with what; passes on what it is given where it stands for a filter; and as a long-running one
 * (gitattributes(5), "Long Running Filter Process") can do nothing, so that git goes on without it.
 */
const canary = (name: string, log: string): string => `#!/bin/sh
{ echo 'ran ${name}'; env; } >>${log}
case $1 in
cat) exec cat ;;
process) printf '0016git-filter-server\\n000eversion=2\\n00000000'; exec cat >/dev/null ;;
esac
exit 0
`;

/** Where traps are set: the folder that their scripts run in, how settings are made there, and the file of those. */
export interface TrapPlace {
  readonly dir: string;
  readonly option: '--global' | '--local' | '--worktree';
  readonly file: string;
}

/** The traps of one user. */
export class Canaries {
  readonly #scene: GitScene;
  readonly #work: Target;
  readonly #user: number;
  readonly #url: string;

  constructor(scene: GitScene, work: Target, url: string) {
    this.#scene = scene;
    this.#work = work;
    this.#user = work.user;
    this.#url = url;
  }

  get #log(): string {
    return this.#scene.at(this.#user, 'canary.log');
  }

  /** Shows of each trap that it is one, alone. */
  async prove(traps: readonly Trap[], place: TrapPlace): Promise<void> {
    await this.#makePrograms(traps);
    this.forget();
    for (const trap of traps) {
      if (trap.control) await this.#proves(trap, trap.control, place);
    }
  }

  /** Sets all traps. */
  async set(traps: readonly Trap[], place: TrapPlace): Promise<void> {
    await this.#makePrograms(traps);
    await this.#run(place, traps.map(({ name, set }) => `( ${this.#names(place, name)}; ${set}; )`).join('\n'));
    this.forget();
  }

  /** Every file of the space that has the token in it. */
  filesWithToken(): string[] {
    const { service, server } = this.#scene;
    try {
      const found = execFileSync('grep', ['-rlF', server.token, spaceOf(service, this.#user)], { encoding: 'utf8' });
      return found.trimEnd().split('\n');
    } catch (error) {
      if ((error as { status?: number }).status === 1) return [];
      throw error;
    }
  }

  /** Removes what the controls left, and forgets what they asked. */
  forget(): void {
    for (const path of this.filesWithToken()) rmSync(path);
    this.#scene.counting.forget();
    this.#scene.server.seen.length = 0;
  }

  /** Which of the traps' programs ran, without a token or with it. */
  ran(): readonly string[] {
    const log = existsSync(this.#log) ? readFileSync(this.#log, 'utf8') : '';
    return [...log.matchAll(/^ran (.*)$/gm)].map(([, name = '']) => name);
  }

  async #makePrograms(traps: readonly Trap[]): Promise<void> {
    const programs = traps.map(({ name }) => `cat >canary-${name} <<'END'\n${canary(name, this.#log)}END`);
    await this.#scene.sh(this.#user, '', [...programs, 'chmod 700 canary-*'].join('\n'));
  }

  /** Sets one trap, has the user's own git step into it, and takes its settings back. */
  async #proves({ name, set }: Trap, [script, shown]: NonNullable<Trap['control']>, place: TrapPlace): Promise<void> {
    const keep = `cp -p ${place.file} "$HOME/.kept" 2>/dev/null || : >"$HOME/.kept"`;
    const whole = `${keep}; ${set}; { ${script}; } 2>&1 || :; mv "$HOME/.kept" ${place.file}`;
    const said = `${name}: ${await this.#run(place, whole, name, this.#scene.server.plainEnv())}`;
    const { counting, server } = this.#scene;
    if (shown === 'runs') {
      expect(this.ran(), said).toContain(name);
      expect(this.filesWithToken(), said).toContain(this.#log);
    } else if (shown === 'reaches') expect(counting.reached.connections, said).toBeGreaterThan(0);
    else if (shown === 'keeps') expect(this.filesWithToken(), said).not.toEqual([]);
    else if (shown instanceof RegExp) expect(said).toMatch(shown);
    else expect(shown(server.seen, this.#work), said).toBe(true);
    this.forget();
  }

  #run(place: TrapPlace, script: string, name = '', env: readonly string[] = []): Promise<string> {
    return this.#scene.sh(this.#user, place.dir, `${this.#names(place, name)}; ${script}`, env);
  }

  #names({ option }: TrapPlace, name: string): string {
    const { server, counting } = this.#scene;
    const names = {
      C: this.#scene.at(this.#user, `canary-${name}`),
      E: `127.0.0.1:${counting.port}`,
      S: server.host,
      U: this.#url,
      F: option,
    };
    return Object.entries(names)
      .map(([key, value]) => `${key}='${value}'`)
      .join('; ');
  }
}
