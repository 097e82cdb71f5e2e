/**
 * Purpose: refuses to start the worker with other rights than it is meant to have.
 * Rights in and out: none are changed; the native init has brought them down before.
 * Called by: main.ts, first of all.
 * Fails: with one sentence for the operator; the worker does not start.
 */
import { readFileSync } from 'node:fs';

/** CAP_CHOWN 0, CAP_SETGID 6, CAP_SETUID 7 (linux/capability.h). */
const workerCapabilities = (1n << 0n) | (1n << 6n) | (1n << 7n);

const field = (status: string, name: string): string => new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(status)?.[1] ?? '';

/**
 * Says what is wrong with the rights in a text of the form of /proc/self/status, or undefined.
 * More than the three capabilities is wrong too: a bug here could then do more than this design allows for.
 */
export const wrongRights = (status: string): string | undefined => {
  if (!/^0\s+0\s+0\s+0$/.test(field(status, 'Uid'))) return 'The worker must run as root (all four uids 0).';
  for (const set of ['CapEff', 'CapPrm']) {
    if (BigInt(`0x${field(status, set)}`) !== workerCapabilities) {
      return `The worker must hold exactly CAP_SETUID, CAP_SETGID and CAP_CHOWN (${set} differs); start it with "workspace-runner".`;
    }
  }
  for (const set of ['CapInh', 'CapAmb']) {
    if (BigInt(`0x${field(status, set)}`) !== 0n)
      return `The worker must have no inheritable or ambient capability (${set}).`;
  }
  if (field(status, 'NoNewPrivs') !== '1')
    return 'The worker must run with no_new_privs; start it with "workspace-runner".';
  return undefined;
};

/** The same for this process. */
export const ownWrongRights = (): string | undefined => wrongRights(readFileSync('/proc/self/status', 'latin1'));
