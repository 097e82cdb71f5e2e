import { spawnSync } from 'node:child_process';
import type { HttpRound } from './http-caller.ts';
import type { MeasuringProcess } from './measuring-process.ts';
import { type Effort, execOf } from './one-and-many.ts';
import { Product } from './product.ts';
import { type Sample, Series } from './statistics.ts';
import { figure, type Row } from './table.ts';
import { benchUid, benchUser } from './users.ts';

const folders = 400;
const filesEach = 250;

/** Run in a home: 100,000 files of some bytes in 400 folders. */
const treeScript = `set -e
mkdir -p repos/project && cd repos/project
head -c 100 /dev/zero >one && split -b 1 -a 3 one f- && rm one
for number in $(seq ${filesEach - 100}); do echo $number >g-$number; done
mkdir d-1 && mv f-* g-* d-1
for folder in $(seq 2 ${folders}); do cp -r d-1 d-$folder; done
`;

/** One count by \`du\`, as the user whose space it is. */
const du = (space: string, uid: number): Sample => {
  const began = performance.now();
  const args = ['--reuid', String(uid), '--regid', String(uid), '--clear-groups', 'du', '-s', '--apparent-size', space];
  const { status, stderr } = spawnSync('setpriv', args, { encoding: 'utf8' });
  const ms = performance.now() - began;
  if (status !== 0) throw new Error(`du failed: ${stderr}`);
  return { micros: [ms * 1000], seconds: ms / 1000 };
};

/** A product without a limit: it counts when it is asked and never by itself. */
const withoutQuota = (): Promise<Product> => Product.start(undefined, { RUNNER_USER_QUOTA_BYTES: '0' });

/** `/v1/usage` of a large space whose count nobody kept, against `du` of the same space. */
export const usageOfMany = async (http: MeasuringProcess, turns: number): Promise<Row[]> => {
  const product = await withoutQuota();
  const { port, token } = product;
  const body = { user: benchUser(0) };
  const contains = `"files":${folders * filesEach}`;
  const round: HttpRound = { port, token, method: 'POST', path: '/v1/usage', body, status: 200, contains };
  const series = { du: new Series(), usage: new Series() };
  try {
    await http.measure(1, 1, execOf(product, 'sh', ['-c', treeScript]));
    for (let turn = 0; turn < turns; turn += 1) {
      series.du.add(du(`${product.workDir}/u${benchUid(0)}`, benchUid(0)));
      // A run drops what was kept.
      await http.measure(1, 1, execOf(product, 'true'));
      series.usage.add(await http.measure(1, 1, round));
    }
  } finally {
    await product.stop();
  }
  const ratio = series.usage.timesAsLongAs(series.du);
  return [
    { what: 'du of 100,000 files in 400 folders', figures: [figure('p50', series.du.p50Ms, 'ms')] },
    {
      what: 'POST /v1/usage of the same, counted anew',
      figures: [figure('p50', series.usage.p50Ms, 'ms'), figure('', ratio, '×')],
      target: { wanted: '≤ 1.1 × du', met: ratio <= 1.1 },
    },
  ];
};

/** What the limit costs an exec: after each run the space is counted anew. */
export const costOfQuota = async (product: Product, http: MeasuringProcess, effort: Effort): Promise<Row[]> => {
  const bare = await withoutQuota();
  const rows: Row[] = [];
  try {
    for (const [callers, each] of [
      [1, effort.one],
      [16, effort.many],
    ] as const) {
      const series = { without: new Series(), with: new Series() };
      await http.measure(callers, 1, execOf(bare, 'true'));
      for (let turn = 0; turn < effort.turns; turn += 1) {
        series.without.add(await http.measure(callers, each, execOf(bare, 'true')));
        series.with.add(await http.measure(callers, each, execOf(product, 'true')));
      }
      rows.push({
        what: `POST /v1/exec with a quota against without, callers: ${callers}`,
        figures: [
          figure('p50', series.with.timesAsLongAs(series.without), '×'),
          figure('rate', series.with.timesAsFastAs(series.without), '×'),
        ],
      });
    }
  } finally {
    await bare.stop();
  }
  return rows;
};
