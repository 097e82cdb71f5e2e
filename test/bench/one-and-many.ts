import { floor } from './floor.ts';
import type { HttpRound } from './http-caller.ts';
import { MeasuringProcess } from './measuring-process.ts';
import type { Product } from './product.ts';
import { Series } from './statistics.ts';
import { figure, type Row } from './table.ts';

const program = '/bin/true';

/** How often things are done: enough for a good number, or for a quick look. */
export interface Effort {
  /** Turns A B A B … */
  readonly turns: number;
  readonly one: number;
  readonly many: number;
}

export const execOf = (
  product: Product,
  tool: string,
  args: readonly string[] = [],
  more: Readonly<Record<string, unknown>> = {},
): HttpRound => ({
  port: product.port,
  token: product.token,
  method: 'POST',
  path: '/v1/exec',
  body: { tool, args, ...more },
  status: 200,
  contains: '"exitCode":0',
});

const healthOf = ({ port, token }: Product): HttpRound => ({
  port,
  token,
  method: 'GET',
  path: '/healthz',
  status: 204,
});

/** One caller: what a single exec takes, against the floor and against a plain spawn. */
export const oneCaller = async (product: Product, http: MeasuringProcess, effort: Effort): Promise<Row[]> => {
  const bareProcess = new MeasuringProcess('bare-spawn.ts', 'production');
  const series = { floor: new Series(), bare: new Series(), health: new Series(), exec: new Series() };
  for (let turn = 0; turn < effort.turns; turn += 1) {
    series.floor.add(floor(effort.one, program));
    series.bare.add(await bareProcess.measure(1, effort.one, [program]));
    series.health.add(await http.measure(1, effort.one, healthOf(product)));
    series.exec.add(await http.measure(1, effort.one, execOf(product, 'true')));
  }
  await bareProcess.end();
  const line = (what: string, one: Series): Row => ({
    what,
    figures: [figure('p50', one.p50Ms, 'ms'), figure('p99', one.p99Ms, 'ms')],
  });
  const ratio = series.exec.timesAsLongAs(series.floor);
  return [
    line('floor: native fork + exec of /bin/true, both pipes read', series.floor),
    line('child_process.spawn with uid and pipes', series.bare),
    line('GET /healthz', series.health),
    line('POST /v1/exec of /bin/true', series.exec),
    {
      what: '  against the floor',
      figures: [figure('', ratio, '×')],
      target: { wanted: '≤ 3.5 × the floor', met: ratio <= 3.5 },
    },
    { what: '  against child_process.spawn', figures: [figure('', series.exec.timesAsLongAs(series.bare), '×')] },
  ];
};

/** Sixteen callers for sixteen users: throughput, against as many plain spawns at once. */
export const sixteenCallers = async (product: Product, http: MeasuringProcess, effort: Effort): Promise<Row[]> => {
  const callers = 16;
  const bareProcess = new MeasuringProcess('bare-spawn.ts', 'production');
  const series = { bare: new Series(), exec: new Series() };
  // The first request of each user makes a space.
  await http.measure(callers, 1, execOf(product, 'true'));
  for (let turn = 0; turn < effort.turns; turn += 1) {
    series.bare.add(await bareProcess.measure(callers, effort.many, [program]));
    series.exec.add(await http.measure(callers, effort.many, execOf(product, 'true')));
  }
  await bareProcess.end();
  const line = (what: string, one: Series): Row => ({
    what,
    figures: [figure('', one.rate, '/s'), figure('p50', one.p50Ms, 'ms'), figure('p99', one.p99Ms, 'ms')],
  });
  const ratio = series.exec.timesAsFastAs(series.bare);
  return [
    line('child_process.spawn, 16 at once', series.bare),
    line('POST /v1/exec, 16 callers, 16 users', series.exec),
    {
      what: '  against child_process.spawn',
      figures: [figure('', ratio, '×')],
      target: { wanted: '≥ 1.5 × the rate', met: ratio >= 1.5 },
    },
  ];
};

/** The script that makes a repository of some size; the same for the service's and the floor's. */
export const repositoryScript = `set -e
git init -q -b main project
cd project
for folder in a b c d; do
  mkdir $folder
  for number in $(seq 100); do echo $folder $number > $folder/$number; done
done
git add .
git -c user.name=A -c user.email=a@b.example commit -q -m one
`;

/** git status of a repository with 400 files, in the user's home and natively. */
export const gitStatus = async (
  product: Product,
  http: MeasuringProcess,
  effort: Effort,
  nativeRepository: string,
): Promise<Row[]> => {
  await http.measure(1, 1, execOf(product, 'sh', ['-c', repositoryScript]));
  const status = execOf(product, 'git', ['status', '--short'], { dir: 'project' });
  const series = { floor: new Series(), exec: new Series() };
  for (let turn = 0; turn < effort.turns; turn += 1) {
    series.floor.add(floor(effort.many, '/usr/bin/git', '-C', nativeRepository, 'status', '--short'));
    series.exec.add(await http.measure(1, effort.many, status));
  }
  return [
    { what: 'git status, 400 files, natively', figures: [figure('p50', series.floor.p50Ms, 'ms')] },
    {
      what: 'POST /v1/exec of git status',
      figures: [figure('p50', series.exec.p50Ms, 'ms'), figure('', series.exec.timesAsLongAs(series.floor), '×')],
    },
  ];
};
