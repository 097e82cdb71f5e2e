/**
 * Measures what a client of one process waits for: the echo of a key, with the read for it already waiting, or the
 * next output, read by `next`.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Connection, requestOf } from './connection.ts';
import { serveRounds } from './rounds.ts';

/** Which process, and what is measured of it. */
export interface ProcessRound {
  readonly kind: 'echo' | 'read';
  readonly port: number;
  readonly token: string;
  readonly processId: string;
}

/** After this a read that was sent waits in the worker, ms. */
const settleMs = 5;
const key = 'x';

const expected = Buffer.from('HTTP/1.1 200 ');

/** One process, as a client with two connections speaks to it. */
class Caller {
  readonly #round: ProcessRound;
  readonly #reader: Connection;
  readonly #writer: Connection;
  #next = 0;

  constructor(round: ProcessRound) {
    this.#round = round;
    this.#reader = new Connection(round.port);
    this.#writer = new Connection(round.port);
  }

  /** Reads up to what there is now. */
  async catchUp(): Promise<void> {
    const answer = await this.#ask(this.#reader, 'read', { waitMs: 0 });
    this.#next = Number(/"next":(\d+)/.exec(answer)?.[1]);
  }

  /** From a key to its echo, µs. */
  async echo(): Promise<number> {
    const read = this.#read().then(() => performance.now());
    await delay(settleMs);
    const began = performance.now();
    const [readAt] = await Promise.all([read, this.#ask(this.#writer, 'write', { data: key })]);
    return (readAt - began) * 1000;
  }

  /** The next output, whatever has passed meanwhile. */
  read(): Promise<void> {
    return this.#read();
  }

  async #read(): Promise<void> {
    const answer = await this.#ask(this.#reader, 'read', { from: this.#next, waitMs: 10_000 });
    const next = Number(/"next":(\d+)/.exec(answer)?.[1]);
    if (!(next > this.#next)) throw new Error('a read that brought nothing');
    this.#next = next;
  }

  /** The end of the answer, where its numbers are. */
  async #ask(connection: Connection, verb: string, more: object): Promise<string> {
    const { processId, port, token } = this.#round;
    const target = { port, token, method: 'POST', path: `/v1/process/${verb}` };
    const answer = await connection.ask(requestOf(target, { processId, ...more }));
    if (!answer.subarray(0, expected.length).equals(expected))
      throw new Error(`not the expected answer: ${answer.toString('latin1', 0, 600)}`);
    return answer.toString('latin1', Math.max(0, answer.length - 256));
  }
}

serveRounds(async ({ what }) => {
  const round = what as ProcessRound;
  const caller = new Caller(round);
  await caller.catchUp();
  return round.kind === 'echo' ? () => caller.echo() : () => caller.read();
});
