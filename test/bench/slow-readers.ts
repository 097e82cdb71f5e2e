import { connect, type Socket } from 'node:net';
import { requestOf } from './connection.ts';
import { memoryOf } from './footprint.ts';
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
    const measured = () => watched.map((part) => memoryOf(product.pid(part)).pss);
    // With warm heaps.
    const fast = new EventReader(product, process.processId, 'fast');
    await fast.begun;
    await passing(process, 200_000_000);
    fast.end();
    const before = measured();
    const readers = Array.from(
      { length: 2 * readersOfEachKind },
      (_, number) => new EventReader(product, process.processId, number % 2 === 0 ? 'slow' : 'none'),
    );
    await Promise.all(readers.map(({ begun }) => begun));
    await passing(process, 500_000_000);
    const first = measured();
    await passing(process, 500_000_000);
    const last = measured();
    for (const reader of readers) reader.end();
    const rows = watched.map((part, index): Row => {
      const [without = 0, early = 0, late = 0] = [before[index], first[index], last[index]];
      return {
        what: `  PSS of the ${part}`,
        figures: [figure('without', without, 'MiB'), figure('with', early, 'MiB'), figure('after', late, 'MiB')],
        target: { wanted: `flat (${flatMiB} MiB)`, met: late - early <= flatMiB },
      };
    });
    return [{ what: '500 MB of a process with 4 slow readers and 4 that read nothing', figures: [] }, ...rows];
  });
