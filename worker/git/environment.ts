/**
 * Purpose: the environment of every git command of a workflow: no configuration but what is written here, and of the
 * request's variables only what a command on the network gets.
 * Rights: none of its own.
 * Called by: session.ts.
 * Fails: never.
 */
import { join } from 'node:path';
import { scratchFolder, scratchNames } from '../../helper/contract/fs.ts';
import { toolPath } from '../config.ts';
import { effectiveEntries } from '../operations/launching.ts';

/**
 * Over every file of configuration (git-config(1), GIT_CONFIG_COUNT). In a clean repository there is none; in the user's
 * it is theirs, which may run programs of theirs, without a token, but leaves nothing behind and asks nobody.
 */
const configuration: Readonly<Record<string, string>> = {
  'core.hooksPath': '/dev/null',
  'core.fsmonitor': 'false',
  'core.pager': 'cat',
  'core.askPass': '',
  'credential.helper': '',
  'http.followRedirects': 'false',
  'http.proxy': '',
  'transfer.bundleURI': 'false',
  'fetch.writeCommitGraph': 'false',
  'submodule.recurse': 'false',
  'push.gpgSign': 'false',
  // What these files say of a commit's parents isn't bound to its name: one that lies would let a push overwrite.
  'core.commitGraph': 'false',
  'core.multiPackIndex': 'false',
  'pack.useBitmaps': 'false',
  // A worktree is moved after it was made: what points from it must not be relative.
  'worktree.useRelativePaths': 'false',
  // Nothing goes on after a command has ended.
  'gc.auto': '0',
  'gc.autoDetach': 'false',
  'maintenance.auto': 'false',
};

const configured = Object.entries(configuration).flatMap(([key, value], index) => [
  `GIT_CONFIG_KEY_${index}=${key}`,
  `GIT_CONFIG_VALUE_${index}=${value}`,
]);

/** What a command may transfer over; a repository's URL of any other kind is refused by git itself. */
export type Transport = 'https' | 'file' | 'none';

/**
 * The variables of one command (git(1), "Environment Variables").
 * @param space absolute path of the user's space
 * @param entries the request's; of several with one key the last one wins, and the server's own win over all
 */
export const gitEnvironment = (space: string, transport: Transport, entries: readonly string[]): string[] => {
  const empty = join(space, scratchFolder, scratchNames.home);
  const given = effectiveEntries(entries);
  const own = [
    `PATH=${toolPath}`,
    'LANG=C.UTF-8',
    // So that there is no ~/.netrc, and nothing in ~/.config.
    `HOME=${empty}`,
    // Who names an authority means that one, and not the system's as well; reading all of those takes time, too.
    ...(given.some((entry) => entry.startsWith('GIT_SSL_CAINFO=')) ? [`GIT_SSL_CAPATH=${empty}`] : []),
    'GIT_CONFIG_NOSYSTEM=1',
    'GIT_CONFIG_SYSTEM=/dev/null',
    'GIT_CONFIG_GLOBAL=/dev/null',
    'GIT_ATTR_NOSYSTEM=1',
    `GIT_CONFIG_COUNT=${Object.keys(configuration).length}`,
    ...configured,
    // Empty where there is none: any word would be the name of a protocol.
    `GIT_ALLOW_PROTOCOL=${transport === 'none' ? '' : transport}`,
    // No repository is looked for above the scratch folder: a user can put one there.
    `GIT_CEILING_DIRECTORIES=${join(space, 'tmp')}`,
    'GIT_NO_REPLACE_OBJECTS=1',
    'GIT_NO_LAZY_FETCH=1',
    'GIT_OPTIONAL_LOCKS=0',
    'GIT_TERMINAL_PROMPT=0',
    'GIT_LFS_SKIP_SMUDGE=1',
    'GIT_HTTP_LOW_SPEED_LIMIT=1',
    'GIT_HTTP_LOW_SPEED_TIME=60',
  ];
  const keyed = [...given, ...own].map((entry) => [entry.slice(0, entry.indexOf('=')), entry] as const);
  return [...new Map(keyed).values()];
};
