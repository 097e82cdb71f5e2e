import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { floor } from './floor.ts';
import type { HttpRound } from './http-caller.ts';
import { MeasuringProcess } from './measuring-process.ts';
import { type Effort, execOf } from './one-and-many.ts';
import { Product } from './product.ts';
import { Series } from './statistics.ts';
import { figure, type Row } from './table.ts';

/** An exec that the worker refuses before any run: the way there and back, and nothing else. */
const refusedExec = (product: Product): HttpRound => ({
  ...execOf(product, 'no-such-tool'),
  status: 403,
  contains: 'tool_not_allowed',
});

/**
 * Where the time of an exec goes: the same thing with ever more layers around it, in turn, one caller each. The
 * differences between neighbours are what each layer costs.
 */
export const layers = async (effort: Effort): Promise<Row[]> => {
  const [whole, workerAlone] = [await Product.start(), await Product.startWorker()];
  const folder = mkdtempSync('/tmp/runner-bench-');
  chmodSync(folder, 0o711);
  const spawner = new MeasuringProcess('spawner-caller.ts', 'production', folder);
  const link = new MeasuringProcess('link-caller.ts', 'gateway', workerAlone.socket);
  const http = new MeasuringProcess('http-caller.ts', 'own');
  const { port, token } = whole;
  const health: HttpRound = { port, token, method: 'GET', path: '/healthz', status: 204 };
  const measured = [
    { what: 'GET /healthz: HTTP alone', once: () => http.measure(1, effort.one, health) },
    {
      what: 'an exec that the worker refuses: HTTP, schema, link, dispatch, audit',
      once: () => http.measure(1, effort.one, refusedExec(whole)),
    },
    { what: 'floor: fork + exec of /bin/true', once: async () => floor(effort.one, '/bin/true') },
    { what: 'a run by the spawner’s socket', once: () => spawner.measure(1, effort.one) },
    { what: 'an exec by the link, without HTTP', once: () => link.measure(1, effort.one) },
    { what: 'POST /v1/exec', once: () => http.measure(1, effort.one, execOf(whole, 'true')) },
  ].map((layer) => ({ ...layer, series: new Series() }));
  try {
    for (const { once } of measured) await once();
    for (let turn = 0; turn < effort.turns; turn += 1)
      for (const { once, series } of measured) series.add(await once());
  } finally {
    await Promise.all([spawner.end(), link.end(), http.end()]);
    await Promise.all([whole.stop(), workerAlone.stop()]);
    rmSync(folder, { recursive: true, force: true });
  }
  return measured.map(({ what, series }) => ({
    what,
    figures: [figure('p50', series.p50Ms, 'ms'), figure('p99', series.p99Ms, 'ms')],
  }));
};
