/**
 * `npm run bench`: what the built product costs, against the floor and the targets of the specification
 * (Performance). Not a test: nothing fails when a machine is slow. See docs/performance.md.
 */
import { spawnSync } from 'node:child_process';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { fileOperations } from './files.ts';
import { buildFloor } from './floor.ts';
import { layers } from './layers.ts';
import { ledgerCosts } from './ledger.ts';
import { MeasuringProcess } from './measuring-process.ts';
import { idleMemory, largeOutput, manyExecs } from './much.ts';
import { type Effort, execOf, gitStatus, oneCaller, repositoryScript, sixteenCallers } from './one-and-many.ts';
import { outputRate, terminalEcho } from './processes.ts';
import { processorProfile } from './processor-profile.ts';
import { Product } from './product.ts';
import { repositories } from './repositories.ts';
import { slowReaders } from './slow-readers.ts';
import { type Row, tableOf } from './table.ts';
import { costOfQuota, usageOfMany } from './usage.ts';

const { values } = parseArgs({
  options: { quick: { type: 'boolean' }, json: { type: 'boolean' }, profile: { type: 'boolean' } },
});

const effort: Effort & { readonly execs: number } = values.quick
  ? { turns: 3, one: 100, many: 25, execs: 1_000 }
  : { turns: 7, one: 400, many: 100, execs: 10_000 };

const say = (text: string): void => {
  process.stderr.write(`${text}\n`);
};

/** Everything a first time, so that no measurement pays for compilers and caches. */
const warmUp = async (product: Product, http: MeasuringProcess): Promise<void> => {
  await http.measure(1, effort.one, execOf(product, 'true'));
};

const measureAll = async (): Promise<Row[]> => {
  const product = await Product.start();
  const http = new MeasuringProcess('http-caller.ts', 'own');
  try {
    const rows: Row[] = idleMemory(product);
    const add = async (what: string, measured: Promise<Row[]>): Promise<void> => {
      say(`bench: ${what} …`);
      rows.push(...(await measured));
    };
    await warmUp(product, http);
    await add('one caller', oneCaller(product, http, effort));
    await add('16 callers', sixteenCallers(product, http, effort));
    const made = spawnSync('sh', ['-c', repositoryScript], { cwd: product.folder, encoding: 'utf8' });
    if (made.status !== 0) throw new Error(`no repository to compare with: ${made.stderr}`);
    await add('git status', gitStatus(product, http, effort, join(product.folder, 'project')));
    await add('repositories', repositories(effort));
    await add('ledger', ledgerCosts(product.folder, effort.many));
    await add('files', fileOperations(product, http, effort));
    await add('usage', usageOfMany(http, effort.turns));
    await add('quota', costOfQuota(product, http, effort));
    await add('large output', largeOutput(product, http, effort.turns));
    await add('terminal', terminalEcho(product, effort));
    await add('output of a process', outputRate(product, effort));
    await add('slow readers', slowReaders(product));
    await add(`${effort.execs} execs`, manyExecs(product, http, effort.execs));
    return rows;
  } finally {
    await http.end();
    await product.stop();
  }
};

const measureProfile = async (): Promise<Row[]> => {
  say('bench: layers …');
  const rows = await layers(effort);
  say('bench: processor profile …');
  return [...rows, ...(await processorProfile(effort))];
};

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void Product.stopAll().then(() => process.exit(1)));
buildFloor();
say(
  `bench: ${cpus().length} processors, Node.js ${process.version}, load ${spawnSync('cat', ['/proc/loadavg']).stdout}`,
);
const rows = values.profile ? await measureProfile() : await measureAll();
process.stdout.write(values.json ? `${JSON.stringify(rows, null, 2)}\n` : `${tableOf(rows)}\n`);
