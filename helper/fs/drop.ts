/**
 * Purpose: from root to one user, for good.
 * Rights in: uid 0 with CAP_SETUID and CAP_SETGID, no_new_privs. Rights out: the user's, no capability, no way back.
 * Called by: main.ts, once, with whom the worker named.
 * Fails: a space that is not as the worker made it is refused before anything is dropped; everything else throws,
 * and the helper ends: half a drop serves nobody.
 */
import { closeSync, constants, fstatSync, lstatSync, openSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { oPath } from './descriptor.ts';
import { errnoOf } from './refusal.ts';

/** Holds the space, if what is there is a folder of the user's alone; undefined otherwise. */
export const holdSpace = (path: string, uid: number): number | undefined => {
  let descriptor: number;
  try {
    descriptor = openSync(path, oPath | constants.O_NOFOLLOW);
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    return undefined;
  }
  const { mode, uid: owner, gid } = fstatSync(descriptor);
  // S_IFDIR and 0700 in one comparison: no other kind, no set-id or sticky bit.
  if (mode === 0o40700 && owner === uid && gid === uid) return descriptor;
  closeSync(descriptor);
  return undefined;
};

/** What a thread's status (proc_pid_status(5)) says after the drop, line by line. */
const expected = (uid: number): readonly RegExp[] => [
  new RegExp(`^Uid:\\s*${uid}\\s+${uid}\\s+${uid}\\s+${uid}$`, 'm'),
  new RegExp(`^Gid:\\s*${uid}\\s+${uid}\\s+${uid}\\s+${uid}$`, 'm'),
  /^Groups:\s*$/m,
  /^CapInh:\s*0+$/m,
  /^CapPrm:\s*0+$/m,
  /^CapEff:\s*0+$/m,
  /^CapAmb:\s*0+$/m,
  /^NoNewPrivs:\s*1$/m,
];

/** Whether every thread has exactly the user's rights. */
export const threadsAre = (uid: number): boolean => {
  const lines = expected(uid);
  return readdirSync('/proc/self/task').every((thread) => {
    const status = readFileSync(`/proc/self/task/${thread}/status`, 'latin1');
    return lines.every((line) => line.test(status));
  });
};

const mustFail = (step: () => void): void => {
  try {
    step();
  } catch {
    return;
  }
  throw new Error('there is a way back to root');
};

/**
 * An io_uring with a kernel thread of its own would go on working as root. Node has a ring without one, which works
 * with the rights of whoever asks (io_uring_setup(2), IORING_SETUP_SQPOLL; "SqThread" in proc_pid_fdinfo(5)).
 */
export const verifyDescriptors = (): void => {
  for (const name of readdirSync('/proc/self/fd')) {
    let target = '';
    try {
      target = readlinkSync(`/proc/self/fd/${name}`);
    } catch (error) {
      // The descriptor of the listing itself.
      if (errnoOf(error) !== 'ENOENT') throw error;
    }
    if (!target.includes('io_uring')) continue;
    if (!/^SqThread:\s*-1$/m.test(readFileSync(`/proc/self/fdinfo/${name}`, 'latin1'))) {
      throw new Error('an io_uring has kept rights');
    }
  }
};

/**
 * Becomes the user, and makes sure of it.
 * @throws when any thread has any other right left
 */
export const drop = (uid: number): void => {
  // Groups and gid first: both need what setuid takes away.
  process.setgroups?.([]);
  process.setgid?.(uid);
  process.setuid?.(uid);
  if (!threadsAre(uid)) throw new Error('a thread has kept rights');
  mustFail(() => process.setuid?.(0));
  mustFail(() => process.seteuid?.(0));
  mustFail(() => process.setgid?.(0));
  mustFail(() => process.setegid?.(0));
  mustFail(() => process.setgroups?.([0]));
  verifyDescriptors();
  // Not dumpable: the files in /proc stay root's, and no process of the user can trace this one (proc(5), ptrace(2)).
  if (lstatSync('/proc/self/stat').uid !== 0) throw new Error('the user could trace the helper');
};
