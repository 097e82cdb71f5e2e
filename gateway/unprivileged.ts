import { readdirSync, readFileSync } from 'node:fs';
import { StartError } from './start-error.ts';

/** The fields of /proc/self/status, by name. */
const fieldsOf = (status: string): ReadonlyMap<string, string> =>
  new Map(
    status.split('\n').map((line): [string, string] => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon), line.slice(colon + 1).trim()];
    }),
  );

/** One number other than 0, four times: real, effective, saved and file system id. */
const oneUnprivilegedId = (value: string | undefined): boolean => /^([1-9]\d*)(\s+\1){3}$/.test(value ?? '');

const noCapability = (value: string | undefined): boolean => /^0+$/.test(value ?? '');

/**
 * What is wrong with the rights that a text of /proc/self/status shows, as a sentence; undefined when they are
 * those of the gateway: one unprivileged uid and gid, no other group, no capability to use, inherit or regain.
 * A field that is missing is wrong. CapBnd is not looked at: without no_new_privs nothing could use it.
 */
export const excessOfRights = (status: string): string | undefined => {
  const fields = fieldsOf(status);
  if (!oneUnprivilegedId(fields.get('Uid'))) return 'The gateway must run as one uid that is not 0.';
  if (!oneUnprivilegedId(fields.get('Gid'))) return 'The gateway must run as one gid that is not 0.';
  if (fields.get('Groups') !== '') return 'The gateway must have no supplementary groups.';
  for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapAmb'])
    if (!noCapability(fields.get(set))) return `The gateway must have no capabilities, but ${set} is not empty.`;
  if (fields.get('NoNewPrivs') !== '1') return 'The gateway must run with no_new_privs set.';
  return undefined;
};

const errorOf = (act: () => unknown): string | undefined => {
  try {
    act();
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code;
  }
};

/**
 * Proves that this process ends HTTP without any right worth taking, before it talks to anybody.
 * @throws StartError
 */
export const proveUnprivileged = (workDir: string): void => {
  const excess = excessOfRights(readFileSync('/proc/self/status', 'utf8'));
  if (excess !== undefined) throw new StartError(excess);
  const refused = errorOf(() => readdirSync(workDir));
  if (refused !== 'EACCES' && refused !== 'ENOENT')
    throw new StartError('The gateway must not be able to list RUNNER_WORK_DIR: it must belong to root, mode 0711.');
};
