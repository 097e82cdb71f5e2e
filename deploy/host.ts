import { readFileSync } from 'node:fs';
import { userNumberMax, userUidFirst } from '../protocol/limits.ts';

/** What the kernel says of this machine or container, as text. */
export interface HostTexts {
  /** /proc/self/uid_map and gid_map (user_namespaces(7)). */
  readonly uidMap: string;
  readonly gidMap: string;
  /** /proc/sys/fs/suid_dumpable (proc(5)). */
  readonly suidDumpable: string;
  /** /proc/sys/kernel/pid_max. */
  readonly pidMax: string;
  /** /proc/self/mountinfo. */
  readonly mountInfo: string;
}

/** The real uid of a supervisor is this + its pid; KILLER_UID_FIRST in helper/native/wire.h. */
const killerUidFirst = 0x4000_0000;

/** Reads them from this process's /proc. */
export const readHost = (): HostTexts => {
  const read = (path: string): string => readFileSync(path, 'latin1').trim();
  return {
    uidMap: read('/proc/self/uid_map'),
    gidMap: read('/proc/self/gid_map'),
    suidDumpable: read('/proc/sys/fs/suid_dumpable'),
    pidMax: read('/proc/sys/kernel/pid_max'),
    mountInfo: read('/proc/self/mountinfo'),
  };
};

/** True when one of the map's ranges holds all of first..last. Ranges that only together hold it do not occur. */
const covers = (map: string, first: number, last: number): boolean =>
  map.split('\n').some((line) => {
    const [inside = 0, , count = 0] = line.trim().split(/\s+/).map(Number);
    return inside <= first && last < inside + count;
  });

/**
 * Says what of the host would undermine the service: nothing starts on such a one.
 * Source: specification, Isolation, "Sandbox", last sentence.
 */
export const hostProblems = (host: HostTexts): string[] => {
  const problems: string[] = [];
  const lastUser = userUidFirst + userNumberMax;
  if (!covers(host.uidMap, 0, lastUser) || !covers(host.gidMap, 0, lastUser)) {
    problems.push(
      `The user namespace does not map the uids and gids 0 to ${lastUser}; run it without user-namespace remapping.`,
    );
  }
  if (!covers(host.uidMap, killerUidFirst, killerUidFirst + Number(host.pidMax))) {
    problems.push(
      `The user namespace does not map the uids from ${killerUidFirst} on, which supervisors need to end runs.`,
    );
  }
  if (host.suidDumpable === '1') {
    problems.push(
      'fs.suid_dumpable is 1: a process that dropped its rights could be read by its user. Set it to 0 or 2.',
    );
  }
  if (/ \/proc .*\bhidepid=(?!0|off)/.test(host.mountInfo)) {
    problems.push('/proc is mounted with hidepid: the service could not see what it must end. Mount it without.');
  }
  return problems;
};
