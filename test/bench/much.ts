import { userUidFirst } from '../../protocol/limits.ts';
import { eventually } from '../support/wait.ts';
import { floor } from './floor.ts';
import { effortsOf, type Footprint, footprintOf, forgetPeak, memoryOf, peakOf, spent, totalPss } from './footprint.ts';
import type { MeasuringProcess } from './measuring-process.ts';
import { execOf } from './one-and-many.ts';
import { killerUidFirst, type Part, type Product, parts } from './product.ts';
import { Series } from './statistics.ts';
import { type Figure, figure, type Row } from './table.ts';

/** Growth up to this counts as none: a heap breathes, MiB. */
const flatMiB = 16;
const callers = 16;
/** Longer than it takes until each user's space is counted anew, ms. */
const settleMs = 10_000;

/** What all parts take before anything was asked of them. */
export const idleMemory = (product: Product): Row[] => {
  const each = parts.map((part) => figure(part, memoryOf(product.pid(part)).pss, 'MiB'));
  const all = totalPss(product);
  return [
    {
      what: 'idle memory, PSS',
      figures: [figure('all', all, 'MiB'), ...each],
      target: { wanted: '≤ 150 MB', met: all * 1.048_576 <= 150 },
    },
  ];
};

/** 200 MB of output from one exec, nearly all of which is thrown away. */
export const largeOutput = async (product: Product, http: MeasuringProcess, turns: number): Promise<Row[]> => {
  const command = ['-c', '200000000', '/dev/zero'];
  const series = { floor: new Series(), exec: new Series() };
  const watched = ['worker', 'gateway'] as const;
  const pids = new Map(watched.map((part) => [part, product.pid(part)]));
  const before = new Map(Array.from(pids, ([part, pid]) => [part, memoryOf(pid).rss]));
  for (const pid of pids.values()) forgetPeak(pid);
  for (let turn = 0; turn < turns; turn += 1) {
    series.floor.add(floor(1, '/usr/bin/head', ...command));
    series.exec.add(await http.measure(1, 1, execOf(product, 'head', command)));
  }
  const ratio = series.exec.timesAsLongAs(series.floor);
  const rows: Row[] = [
    { what: '200 MB of output, a native reader that discards', figures: [figure('p50', series.floor.p50Ms, 'ms')] },
    {
      what: '200 MB of output from one exec',
      figures: [figure('p50', series.exec.p50Ms, 'ms'), figure('', ratio, '×')],
      target: { wanted: '≤ 2 × the native reader', met: ratio <= 2 },
    },
  ];
  for (const [part, pid] of pids) {
    const [first = 0, peak, last] = [before.get(part), peakOf(pid), memoryOf(pid).rss];
    rows.push({
      what: `  RSS of the ${part}`,
      figures: [figure('before', first, 'MiB'), figure('peak', peak, 'MiB'), figure('after', last, 'MiB')],
      ...(part === 'worker' ? { target: { wanted: `flat (${flatMiB} MiB)`, met: peak - first <= flatMiB } } : {}),
    });
  }
  return rows;
};

const ofParts = (unit: Figure['unit'], of: (part: Part) => number): Figure[] =>
  parts.map((part) => figure(part, of(part), unit));

/** Whether no part has more descriptors than before. */
const noDescriptorsMore = (before: Footprint, now: Footprint): boolean =>
  parts.every((part) => now.descriptors[part] <= before.descriptors[part]);
const noProcessesMore = (before: Footprint, now: Footprint): boolean =>
  now.processes <= before.processes && now.spaces <= before.spaces;

/** What is held once the counts of spaces are over, which the service makes by itself some time after a run. */
const settled = async (product: Product, before?: Footprint): Promise<Footprint> => {
  let seen = footprintOf(product);
  const isSettled = (): boolean => {
    seen = footprintOf(product);
    if (before !== undefined) return noDescriptorsMore(before, seen) && noProcessesMore(before, seen);
    return product.processes().every(({ uids }) => uids.every((uid) => uid < userUidFirst || uid >= killerUidFirst));
  };
  // What is left for good is left after that as well, and is told.
  await eventually('as much as before', isSettled, settleMs).catch(() => undefined);
  return seen;
};

/** Many execs: what is left of them, and what each took of every part. */
export const manyExecs = async (product: Product, http: MeasuringProcess, count: number): Promise<Row[]> => {
  const each = Math.ceil(count / 4 / callers);
  const quarter = async () => http.measure(callers, each, execOf(product, 'true'));
  await quarter();
  const warm = await settled(product);
  const effort = effortsOf(product);
  const series = new Series();
  for (let done = 0; done < 2; done += 1) series.add(await quarter());
  const middle = footprintOf(product);
  series.add(await quarter());
  const cost = spent(effort, effortsOf(product), 3 * callers * each);
  const last = await settled(product, warm);
  const flat = parts.every((part) => last.memory[part].pss - middle.memory[part].pss <= flatMiB);
  return [
    { what: `${4 * callers * each} execs, 16 callers`, figures: [figure('', series.rate, '/s')] },
    { what: '  PSS after a quarter of them', figures: ofParts('MiB', (part) => warm.memory[part].pss) },
    {
      what: '  PSS after all of them',
      figures: ofParts('MiB', (part) => last.memory[part].pss),
      target: { wanted: `no growth in the last quarter (${flatMiB} MiB)`, met: flat },
    },
    { what: '  RSS after all of them', figures: ofParts('MiB', (part) => last.memory[part].rss) },
    {
      what: '  descriptors more than after a quarter',
      figures: ofParts('', (part) => last.descriptors[part] - warm.descriptors[part]),
      target: { wanted: 'none', met: noDescriptorsMore(warm, last) },
    },
    {
      what: '  processes and spaces more',
      figures: [figure('processes', last.processes - warm.processes), figure('spaces', last.spaces - warm.spaces)],
      target: { wanted: 'none', met: noProcessesMore(warm, last) },
    },
    {
      what: '  processor time of an exec',
      figures: [
        ...ofParts('µs', (part) => cost[part].cpuMicros),
        figure('supervisor and tool', cost.spawner.childrenMicros, 'µs'),
      ],
    },
    { what: '  wake-ups of an exec', figures: ofParts('', (part) => cost[part].wakeUps) },
  ];
};
