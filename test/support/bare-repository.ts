import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** What a commit can hold: a file's content, a program's, or another repository's commit (a submodule). */
export type Entry = string | { readonly program: string } | { readonly submodule: string };

/** The environment of the tests' own git: nothing of whoever runs the tests. */
export const plainGitEnvironment = {
  PATH: '/usr/local/bin:/usr/bin:/bin',
  HOME: '/nonexistent',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_TERMINAL_PROMPT: '0',
} as const;

/** Writes down what each push was to change, and how many push options came with it. */
const recordPushes = `#!/bin/sh
while read -r old new ref; do
  echo "$ref $old $new options=\${GIT_PUSH_OPTION_COUNT:-0}" >>"$GIT_DIR/pushed"
done
`;

const configuration = `[core]
	repositoryformatversion = 0
	bare = true
[http]
	receivepack = true
[receive]
	advertisePushOptions = true
`;

const firstSecond = 1_700_000_000;

/** A repository at the git server. Tests change it here, as others who push to it would. */
export class BareRepository {
  readonly folder: string;
  #commits = 0;

  constructor(folder: string) {
    this.folder = folder;
    // As `git init --bare` makes it, which takes a process (gitrepository-layout(5)).
    for (const name of ['objects', 'refs', 'hooks']) mkdirSync(join(folder, name), { recursive: true });
    writeFileSync(join(folder, 'HEAD'), 'ref: refs/heads/main\n');
    writeFileSync(join(folder, 'config'), configuration);
    writeFileSync(join(folder, 'hooks/pre-receive'), recordPushes);
    chmodSync(join(folder, 'hooks/pre-receive'), 0o755);
  }

  /** Runs git in it and returns what it says, without the last line break. */
  git(...args: readonly string[]): string {
    return this.#git(args).replace(/\n$/, '');
  }

  #git(args: readonly string[], input = ''): string {
    return execFileSync('git', ['--git-dir', this.folder, ...args], {
      env: plainGitEnvironment,
      encoding: 'utf8',
      input,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
  }

  /** One more commit on a branch, which begins with it if there is none yet; returns its id. */
  commit(branch: string, entries: Readonly<Record<string, Entry>>, message = 'a commit'): string {
    const ref = `refs/heads/${branch}`;
    const data = (text: string): string => `data ${Buffer.byteLength(text)}\n${text}\n`;
    const change = ([path, entry]: [string, Entry]): string => {
      if (typeof entry === 'string') return `M 100644 inline ${path}\n${data(entry)}`;
      if ('program' in entry) return `M 100755 inline ${path}\n${data(entry.program)}`;
      return `M 160000 ${entry.submodule} ${path}\n`;
    };
    this.#commits += 1;
    const stream = [
      `commit ${ref}\nmark :1\n`,
      `committer Upstream <upstream@example.invalid> ${firstSecond + this.#commits} +0000\n`,
      data(message),
      ref in this.refs() ? `from ${ref}^0\n` : '',
      ...Object.entries(entries).map(change),
      'get-mark :1\n',
    ];
    return this.#git(['fast-import', '--quiet', '--cat-blob-fd=1'], stream.join('')).trimEnd();
  }

  /** The commit that a branch is at. */
  tip(branch: string): string {
    return this.git('rev-parse', '--verify', `refs/heads/${branch}`);
  }

  /** Every ref there is, with what it is at. */
  refs(): Readonly<Record<string, string>> {
    const lines = this.git('for-each-ref', '--format=%(refname) %(objectname)').split('\n');
    return Object.fromEntries(lines.filter((line) => line !== '').map((line) => line.split(' ') as [string, string]));
  }

  /** Every change that a push asked for: `<ref> <old> <new> options=<n>`. */
  pushed(): readonly string[] {
    const record = join(this.folder, 'pushed');
    return existsSync(record) ? readFileSync(record, 'utf8').trimEnd().split('\n') : [];
  }
}
