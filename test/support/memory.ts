import { readFileSync } from 'node:fs';

/** Memory that is a process's own, bytes: private pages and its share of the others (proc(5), Pss). */
export const memoryOf = (pid: number): number => {
  const kib = /^Pss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1'))?.[1];
  if (kib === undefined) throw new Error('the memory of a process is not told');
  return Number(kib) * 1024;
};

export const MiB = 1024 * 1024;
