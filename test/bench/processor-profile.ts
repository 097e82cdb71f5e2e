import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../support/service.ts';
import { MeasuringProcess } from './measuring-process.ts';
import { type Effort, execOf } from './one-and-many.ts';
import { Product } from './product.ts';
import { figure, type Row } from './table.ts';

interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  }[];
  /** On the monotonic clock, µs. */
  readonly startTime: number;
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

const shown = 15;

/** On the same clock, µs. */
const now = (): number => Number(process.hrtime.bigint() / 1000n);

/** Own time of each function between two moments, the largest first, µs. */
const ownTimes = (profile: CpuProfile, from: number, to: number): [string, number][] => {
  const { nodes, samples, timeDeltas } = profile;
  const names = new Map(
    nodes.map(({ id, callFrame: { functionName, url, lineNumber } }) => {
      const file = url.replace(/^file:\/\//, '').replace(`${root}/`, '');
      return [id, `${functionName || '(anonymous)'}${file === '' ? '' : ` ${file}:${lineNumber + 1}`}`];
    }),
  );
  const micros = new Map<string, number>();
  let at = profile.startTime;
  for (const [index, sample] of samples.entries()) {
    const delta = timeDeltas[index] ?? 0;
    at += delta;
    const name = names.get(sample) ?? '?';
    if (at >= from && at <= to) micros.set(name, (micros.get(name) ?? 0) + delta);
  }
  return Array.from(micros).toSorted(([, a], [, b]) => b - a);
};

/**
 * Gateway and worker under V8's sampling profiler while 16 callers keep them busy: which functions the time is
 * spent in. The service passes no options on to Node, so it is started with a Node that has them.
 */
export const processorProfile = async (effort: Effort): Promise<Row[]> => {
  const folder = mkdtempSync('/tmp/runner-bench-');
  const profiles = join(folder, 'profiles');
  chmodSync(folder, 0o755);
  mkdirSync(profiles);
  chmodSync(profiles, 0o1777);
  const node = join(folder, 'node');
  writeFileSync(node, `#!/bin/sh\nexec ${process.execPath} --cpu-prof --cpu-prof-dir=${profiles} "$@"\n`, {
    mode: 0o755,
  });
  const main = (part: string): string => `${root}/dist/${part}/main.js`;
  const init = `${root}/dist/helper/native/workspace-runner-native`;
  const product = await Product.start([init, 'init', '19999', '19999', node, main('worker'), main('gateway')]);
  const http = new MeasuringProcess('http-caller.ts', 'own');
  const rounds = effort.turns * effort.many;
  const busy = { from: 0, to: 0 };
  try {
    await http.measure(16, effort.many, execOf(product, 'true'));
    busy.from = now();
    await http.measure(16, rounds, execOf(product, 'true'));
    busy.to = now();
  } finally {
    await http.end();
    await product.stop();
  }
  const rows = readdirSync(profiles).flatMap((name) => {
    const profile = JSON.parse(readFileSync(join(profiles, name), 'utf8')) as CpuProfile;
    const part = profile.nodes.some(({ callFrame }) => callFrame.url.endsWith('worker/main.js')) ? 'worker' : 'gateway';
    const times = ownTimes(profile, busy.from, busy.to).filter(([functionName]) => functionName !== '(idle)');
    const perExec = (micros: number) => figure('', micros / (16 * rounds), 'µs');
    const all = times.reduce((sum, [, micros]) => sum + micros, 0);
    return [
      { what: `${part}: time in its main thread for each exec`, figures: [perExec(all)] },
      ...times.slice(0, shown).map(([what, micros]) => ({ what: `  ${what}`, figures: [perExec(micros)] })),
    ];
  });
  rmSync(folder, { recursive: true, force: true });
  return rows;
};
