/**
 * Purpose: where a clone came from, as its own file says: the user's to write, and so checked like a caller's word.
 * Rights: none of its own.
 * Called by: the handlers of the repo routes that go on the network for a clone that is there.
 * Fails: with `host_not_allowed` for anything but a permitted URL of this very project.
 */
import { Refusal } from '../../protocol/errors.ts';
import type { WorkerConfig } from '../config.ts';
import type { GitCommands } from './commands.ts';
import { permittedUrl } from './permitted.ts';
import type { GitSession } from './session.ts';

/** What the network commands for a clone need to know of it. */
export interface Remote {
  readonly href: string;
  readonly format: 'sha1' | 'sha256';
}

/** The last value of each key (git-config(1), `--null --get-regexp`): "key\nvalue\0". */
const valuesOf = (text: string): ReadonlyMap<string, string> =>
  new Map(
    text.split('\0').map((entry) => {
      const end = entry.indexOf('\n');
      return [entry.slice(0, end), entry.slice(end + 1)];
    }),
  );

/**
 * Asks git for the clone's remote.
 * @throws Refusal `host_not_allowed`: also when the URL leads to another project, which nobody has asked to be pushed to
 */
export const remoteOf = async (
  session: GitSession,
  git: GitCommands,
  project: string,
  config: WorkerConfig,
): Promise<Remote> => {
  const values = valuesOf((await session.ask(git.configurationOf(project))) ?? '');
  const { href, folder } = permittedUrl(values.get('remote.origin.url') ?? '', config);
  if (folder !== project) throw new Refusal('host_not_allowed');
  return { href, format: values.get('extensions.objectformat') === 'sha256' ? 'sha256' : 'sha1' };
};
