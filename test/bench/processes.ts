import { setTimeout as delay } from 'node:timers/promises';
import { Client } from '../support/http.ts';
import { TestProcess } from '../support/process-client.ts';
import { floor } from './floor.ts';
import { MeasuringProcess } from './measuring-process.ts';
import type { Effort } from './one-and-many.ts';
import type { ProcessRound } from './process-caller.ts';
import type { Product } from './product.ts';
import { median, Series } from './statistics.ts';
import { figure, type Row } from './table.ts';
import { benchUser } from './users.ts';

/** Text, so that a reader's answers have no more to escape than those of real tools. */
export const endlessText = ['-c', `exec yes '${'text of a tool that has much to say '.repeat(2)}'`];
const floorBytes = 200_000_000;
/** How long output is left to flow for one sample, ms. */
const flowMs = 1_000;

/** Starts a process of the first user, has something done with it, and ends it. */
export const withProcess = async <T>(
  { port, token }: Product,
  tool: string,
  args: readonly string[],
  tty: boolean,
  use: (process: TestProcess) => Promise<T>,
): Promise<T> => {
  const client = new Client(port, token);
  try {
    const process = await TestProcess.start(client, benchUser(0), tool, args, tty);
    const result = await use(process);
    const { status, text } = await process.ask('terminate', { signal: 'SIGKILL' });
    if (status !== 200) throw new Error(`a process was not ended: ${text}`);
    return result;
  } finally {
    client.close();
  }
};

/** How much has passed out of the window: nothing is copied for it but four bytes. */
export const passedBytes = async (process: TestProcess): Promise<number> =>
  (await process.read({ maxBytes: 4, encoding: 'base64' })).retainedFrom;

/** Waits until so many more bytes have passed. */
export const passing = async (process: TestProcess, bytes: number): Promise<void> => {
  const wanted = (await passedBytes(process)) + bytes;
  while ((await passedBytes(process)) < wanted) await delay(20);
};

/** What flowed while something was done, MB/s, as the offsets tell it. */
const rateDuring = async (process: TestProcess, doing: () => Promise<unknown>): Promise<number> => {
  await passing(process, 10_000_000);
  const [from, began] = [await passedBytes(process), performance.now()];
  await doing();
  return ((await passedBytes(process)) - from) / 1e3 / (performance.now() - began);
};

const roundOf = (kind: ProcessRound['kind'], { port, token }: Product, { processId }: TestProcess): ProcessRound => ({
  kind,
  port,
  token,
  processId,
});

/** From a key to what a tool on a terminal in raw mode answers. */
export const terminalEcho = async (product: Product, effort: Effort): Promise<Row[]> => {
  const caller = new MeasuringProcess('process-caller.ts', 'own');
  const series = new Series();
  try {
    await withProcess(product, 'sh', ['-c', 'stty raw -echo && echo ready && exec cat'], true, async (process) => {
      await process.said('ready');
      const round = roundOf('echo', product, process);
      await caller.measure(1, effort.many, round);
      for (let turn = 0; turn < effort.turns; turn += 1) series.add(await caller.measure(1, effort.many, round));
    });
  } finally {
    await caller.end();
  }
  const { p50Ms, p99Ms } = series;
  return [
    {
      what: 'a key on a terminal, written until its echo is read',
      figures: [figure('p50', p50Ms, 'ms'), figure('p99', p99Ms, 'ms')],
      target: { wanted: '≤ 3 ms', met: p50Ms <= 3 },
    },
  ];
};

/** How fast a tool can write when nobody reads and when somebody does, against a native reader that discards. */
export const outputRate = async (product: Product, effort: Effort): Promise<Row[]> => {
  const caller = new MeasuringProcess('process-caller.ts', 'own');
  const found = { floor: [] as number[], zeros: [] as number[], text: [] as number[], read: [] as number[] };
  const reads = new Series();
  try {
    for (let turn = 0; turn < effort.turns; turn += 1) {
      found.floor.push(floorBytes / 1e6 / floor(1, '/usr/bin/head', '-c', String(floorBytes), '/dev/zero').seconds);
      const zeros = await withProcess(product, 'head', ['-c', '1T', '/dev/zero'], false, (process) =>
        rateDuring(process, () => delay(flowMs)),
      );
      found.zeros.push(zeros);
      await withProcess(product, 'sh', endlessText, false, async (process) => {
        found.text.push(await rateDuring(process, () => delay(flowMs)));
        const round = roundOf('read', product, process);
        await caller.measure(1, 5, round);
        const read = async () => reads.add(await caller.measure(1, effort.many, round));
        found.read.push(await rateDuring(process, read));
      });
    }
  } finally {
    await caller.end();
  }
  const rate = median(found.zeros);
  const ratio = median(found.zeros.map((value, index) => value / (found.floor[index] ?? Number.NaN)));
  return [
    { what: 'output of head, a native reader that discards', figures: [figure('', median(found.floor), 'MB/s')] },
    {
      what: 'output of head as a process, into the window',
      figures: [figure('', rate, 'MB/s'), figure('', ratio, '×')],
      target: { wanted: '≥ 200 MB/s', met: rate >= 200 },
    },
    { what: '  of yes', figures: [figure('', median(found.text), 'MB/s')] },
    {
      what: '  of yes, while it is read by next',
      figures: [figure('', median(found.read), 'MB/s'), figure('reads', reads.rate, '/s')],
    },
  ];
};
