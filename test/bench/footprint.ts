import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { type Part, type Product, parts } from './product.ts';

const kilobytes = (text: string, field: string): number =>
  Number(new RegExp(`^${field}:\\s*(\\d+) kB`, 'm').exec(text)?.[1] ?? Number.NaN) / 1024;

/** Memory of a process, MiB. */
export interface Memory {
  readonly rss: number;
  /** Shared pages counted by their share. */
  readonly pss: number;
}

export const memoryOf = (pid: number): Memory => {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  return { rss: kilobytes(rollup, 'Rss'), pss: kilobytes(rollup, 'Pss') };
};

/** From here on the kernel remembers the largest RSS of the process anew (proc(5), clear_refs). */
export const forgetPeak = (pid: number): void => writeFileSync(`/proc/${pid}/clear_refs`, '5');

/** The largest RSS since then, MiB. */
export const peakOf = (pid: number): number => kilobytes(readFileSync(`/proc/${pid}/status`, 'utf8'), 'VmHWM');

const descriptorsOf = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length;

/** What the product holds at one moment. */
export interface Footprint {
  readonly memory: Readonly<Record<Part, Memory>>;
  readonly descriptors: Readonly<Record<Part, number>>;
  readonly processes: number;
  readonly spaces: number;
}

const ofEachPart = <T>(product: Product, look: (pid: number) => T): Record<Part, T> =>
  Object.fromEntries(parts.map((part) => [part, look(product.pid(part))])) as Record<Part, T>;

export const footprintOf = (product: Product): Footprint => ({
  memory: ofEachPart(product, memoryOf),
  descriptors: ofEachPart(product, descriptorsOf),
  processes: product.processes().length,
  spaces: readdirSync(product.workDir).filter((name) => /^u\d+$/.test(name)).length,
});

/** PSS of all processes of the product, init included, MiB. */
export const totalPss = (product: Product): number =>
  product.processes().reduce((sum, { pid }) => sum + memoryOf(pid).pss, 0);

/** What the kernel has counted of a process so far. */
export interface Effort {
  /** Time on a processor, all threads, µs. */
  readonly cpuMicros: number;
  /** Time on a processor of its ended children and theirs, µs. */
  readonly childrenMicros: number;
  /** How often a thread waited for something and was woken. */
  readonly wakeUps: number;
}

/** USER_HZ: what clock ticks mean in /proc, on every architecture of this service. */
const ticksPerSecond = 100;

const effortOf = (pid: number): Effort => {
  let cpuMicros = 0;
  let wakeUps = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const folder = `/proc/${pid}/task/${thread}`;
    cpuMicros += Number(readFileSync(`${folder}/schedstat`, 'utf8').split(' ')[0]) / 1000;
    wakeUps += Number(/^voluntary_ctxt_switches:\s*(\d+)/m.exec(readFileSync(`${folder}/status`, 'utf8'))?.[1]);
  }
  // proc(5): after the name in parentheses, fields 16 and 17 are the children's user and system time.
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)?.split(' ') ?? [];
  const childrenMicros = ((Number(fields[13]) + Number(fields[14])) * 1e6) / ticksPerSecond;
  return { cpuMicros, childrenMicros, wakeUps };
};

export type Efforts = Readonly<Record<Part, Effort>>;

export const effortsOf = (product: Product): Efforts => ofEachPart(product, effortOf);

/** What each part spent for one of `count` rounds between two looks. */
export const spent = (before: Efforts, after: Efforts, count: number): Efforts =>
  Object.fromEntries(
    parts.map((part) => {
      const of = (field: keyof Effort): number => (after[part][field] - before[part][field]) / count;
      return [part, { cpuMicros: of('cpuMicros'), childrenMicros: of('childrenMicros'), wakeUps: of('wakeUps') }];
    }),
  ) as Record<Part, Effort>;
