import { connect, type Socket } from 'node:net';
import { requestOf } from './connection.ts';
import { forgetPeak, memoryOf, peakOf } from './footprint.ts';
import { endlessText, passing, withProcess } from './processes.ts';
import type { Product } from './product.ts';
import { figure, type Row } from './table.ts';

/** Growth up to this counts as none: a heap breathes, MiB. */
const flatMiB = 16;
const readersOfEachKind = 4;
/** A slow reader takes so much, so often. */
const sip = { bytes: 16_384, everyMs: 100 };

/** Reads a stream of events: as fast as it can, slowly, or no more than its beginning. */
class EventReader {
  readonly #socket: Socket;
  readonly #timer: NodeJS.Timeout | undefined;
  readonly #begun = Promise.withResolvers<void>();

  constructor({ port, token }: Product, processId: string, pace: 'fast' | 'slow' | 'none') {
    this.#socket = connect({ port, host: '127.0.0.1' });
    this.#socket.on('error', () => undefined);
    this.#socket.write(requestOf({ port, token, method: 'GET', path: `/v1/process/stream?processId=${processId}` }));
    this.#socket.once('data', (chunk: Buffer) => {
      if (chunk.toString('latin1', 0, 13) === 'HTTP/1.1 200 ') this.#begun.resolve();
      else this.#begun.reject(new Error('no stream of events'));
      if (pace !== 'fast') this.#socket.pause();
    });
    if (pace === 'fast') this.#socket.resume();
    if (pace === 'slow') this.#timer = setInterval(() => this.#socket.read(sip.bytes), sip.everyMs);
  }

  /** Settles when its first event is there. */
  get begun(): Promise<void> {
    return this.#begun.promise;
  }

  end(): void {
    clearInterval(this.#timer);
    this.#socket.destroy();
  }
}

/** What readers that don't keep up cost the service while a process writes 500 MB. */
export const slowReaders = (product: Product): Promise<Row[]> =>
  withProcess(product, 'sh', endlessText, false, async (process) => {
    const watched = ['worker', 'gateway'] as const;
    const pids = new Map(watched.map((part) => [part, product.pid(part)]));
    // With warm heaps.
    const fast = new EventReader(product, process.processId, 'fast');
    await fast.begun;
    await passing(process, 200_000_000);
    fast.end();
    await passing(process, 100_000_000);
    const before = new Map(Array.from(pids, ([part, pid]) => [part, memoryOf(pid)]));
    for (const pid of pids.values()) forgetPeak(pid);
    const readers = Array.from(
      { length: 2 * readersOfEachKind },
      (_, number) => new EventReader(product, process.processId, number % 2 === 0 ? 'slow' : 'none'),
    );
    await Promise.all(readers.map(({ begun }) => begun));
    await passing(process, 500_000_000);
    const rows = Array.from(pids, ([part, pid]): Row => {
      const [first, last, peak] = [
        before.get(part) ?? { pss: Number.NaN, rss: Number.NaN },
        memoryOf(pid),
        peakOf(pid),
      ];
      const grown = last.pss - first.pss;
      return {
        what: `  PSS of the ${part}`,
        figures: [
          figure('before', first.pss, 'MiB'),
          figure('after', last.pss, 'MiB'),
          figure('RSS more at its peak', peak - first.rss, 'MiB'),
        ],
        target: { wanted: `flat (${flatMiB} MiB)`, met: grown <= flatMiB },
      };
    });
    for (const reader of readers) reader.end();
    return [{ what: '500 MB of a process with 4 slow readers and 4 that read nothing', figures: [] }, ...rows];
  });
