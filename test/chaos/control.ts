/**
 * What the harness and the processes of the service under chaos say to each other: through files, which outlive both.
 * `order` is what is to happen in this round; `struck-<round>` is made by whoever does it, and so it is done once.
 */
import { closeSync, openSync, readFileSync, renameSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Strike } from './points.ts';

/** What is to happen to one request. */
export interface Order extends Strike {
  readonly round: number;
  /** A text that this request holds, and no other. */
  readonly canary: string;
}

/** What was done. */
export interface Struck {
  readonly pid: number;
  /** Of the request that was hit, where it was known there. */
  readonly operationId: string | undefined;
}

const read = <T>(path: string): T | undefined => {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as T;
  } catch (error) {
    // A `struck` that is still being written counts as not there yet.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT' || error instanceof SyntaxError) return undefined;
    throw error;
  }
};

/** The folder with the files; everybody may write there. */
export class Control {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** The harness: gives an order. All of it is there, or nothing. */
  give(order: Order): void {
    writeFileSync(join(this.#folder, 'order.new'), JSON.stringify(order), { mode: 0o644 });
    renameSync(join(this.#folder, 'order.new'), join(this.#folder, 'order'));
  }

  /** The harness: takes it back. */
  withdraw(): void {
    rmSync(join(this.#folder, 'order'), { force: true });
  }

  /** The order that stands. */
  get order(): Order | undefined {
    return read<Order>(join(this.#folder, 'order'));
  }

  /** What became of it. */
  struck(round: number): Struck | undefined {
    return read<Struck>(join(this.#folder, `struck-${round}`));
  }

  /** A process at its point: true for the one that is to carry the order out, once. */
  claim({ round }: Order, operationId: string | undefined): boolean {
    try {
      const file = openSync(join(this.#folder, `struck-${round}`), 'wx', 0o644);
      writeSync(file, JSON.stringify({ pid: process.pid, operationId }));
      closeSync(file);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
      throw error;
    }
  }
}
