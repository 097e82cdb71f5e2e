import { setTimeout as delay } from 'node:timers/promises';
import type { HttpRound } from './http-caller.ts';
import type { MeasuringProcess } from './measuring-process.ts';
import { type Effort, execOf } from './one-and-many.ts';
import type { Product } from './product.ts';
import { Series } from './statistics.ts';
import { figure, type Row } from './table.ts';

const kibibytes = 4;
/** The helper that stands by next is up again after this, ms. */
const standByMs = 500;

const roundOf = (
  { port, token }: Product,
  route: string,
  body: Readonly<Record<string, unknown>>,
  contains: string,
): HttpRound => ({ port, token, method: 'POST', path: `/v1/files/${route}`, body, status: 200, contains });

/** Reads and writes by a helper that is there, and the first operation that a user's new helper does. */
export const fileOperations = async (product: Product, http: MeasuringProcess, effort: Effort): Promise<Row[]> => {
  const content = 'x'.repeat(kibibytes * 1024);
  const write = roundOf(product, 'write', { path: 'file', content }, `"size":${content.length}`);
  const read = roundOf(product, 'read', { path: 'file' }, '"text":true');
  const list = roundOf(product, 'list', { path: '' }, '"truncated":false');
  const series = { write: new Series(), read: new Series(), first: new Series() };
  await http.measure(1, 50, write);
  await http.measure(1, 50, read);
  for (let turn = 0; turn < effort.turns; turn += 1) {
    series.write.add(await http.measure(1, effort.one, write));
    series.read.add(await http.measure(1, effort.one, read));
  }
  for (let turn = 0; turn < 3 * effort.turns; turn += 1) {
    // A run ends its user's helpers.
    await http.measure(1, 1, execOf(product, 'true'));
    await delay(standByMs);
    series.first.add(await http.measure(1, 1, list));
  }
  const line = (what: string, { p50Ms, p99Ms }: Series): Row => ({
    what,
    figures: [figure('p50', p50Ms, 'ms'), figure('p99', p99Ms, 'ms')],
  });
  const first = series.first.p50Ms;
  return [
    line(`POST /v1/files/read of ${kibibytes} KiB`, series.read),
    line(`POST /v1/files/write of ${kibibytes} KiB`, series.write),
    {
      what: 'first file operation by a helper that stood by',
      figures: [figure('p50', first, 'ms')],
      target: { wanted: '≤ 15 ms', met: first <= 15 },
    },
  ];
};
