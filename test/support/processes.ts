import { readdirSync, readFileSync } from 'node:fs';

/** One process as /proc shows it. */
export interface ProcessView {
  readonly pid: number;
  readonly parent: number;
  readonly state: string;
  readonly uids: readonly number[];
  readonly command: string;
}

const read = (path: string): string | undefined => {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return undefined;
  }
};

const numbers = (text: string): number[] => text.trim().split(/\s+/).map(Number);

const view = (pid: number): ProcessView | undefined => {
  const status = read(`/proc/${pid}/status`);
  const command = read(`/proc/${pid}/cmdline`);
  if (status === undefined || command === undefined) return undefined;
  const field = (name: string): string => new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(status)?.[1] ?? '';
  return {
    pid,
    parent: Number(field('PPid')),
    state: field('State').slice(0, 1),
    uids: numbers(field('Uid')),
    command: command.replaceAll('\0', ' ').trim(),
  };
};

/** Every process there is, zombies included. */
export const allProcesses = (): ProcessView[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => view(Number(name)))
    .filter((found) => found !== undefined);

/** The processes of which any uid is this one. */
export const processesOf = (uid: number): ProcessView[] => allProcesses().filter(({ uids }) => uids.includes(uid));

/** Kills processes, any of which may have gone already. */
export const killAll = (pids: readonly number[]): void => {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
};

/** A process and all that descends from it. */
export const treeOf = (root: number): ProcessView[] => {
  const all = allProcesses();
  const inTree = new Set([root]);
  for (let grown = true; grown; ) {
    grown = false;
    for (const { pid, parent } of all) {
      if (inTree.has(parent) && !inTree.has(pid)) {
        inTree.add(pid);
        grown = true;
      }
    }
  }
  return all.filter(({ pid }) => inTree.has(pid));
};
