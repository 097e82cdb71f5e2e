import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { Refusal } from '../../../../protocol/errors.ts';
import { Spawner } from '../../../../worker/runs/spawner.ts';
import { eventually } from '../../../support/wait.ts';
import { collectingLog } from './collect.ts';
import { ownFolder } from './socket-pair.ts';

/** One connection as the spawner's side sees it. */
export interface Asked {
  readonly socket: Socket;
  /** All that was sent so far. */
  received(): Buffer;
  /** True when the other side has ended its half. */
  ended(): boolean;
  closed(): boolean;
}

/** A spawner's socket whose words are the test's: what the native program would never say, too. */
export class StandInSpawner extends Spawner {
  readonly asked: Asked[] = [];
  readonly #server: Server;
  readonly #remove: () => void;
  /** Answers `ready` as a spawner that is down. */
  down = false;

  private constructor(folder: string, remove: () => void) {
    super({ program: '/nowhere', folder, lock: '/nowhere' }, collectingLog().log);
    this.#remove = remove;
    // As the native side: each half of a connection ends by itself.
    this.#server = createServer({ allowHalfOpen: true }, (socket) => {
      const chunks: Buffer[] = [];
      let ended = false;
      let closed = false;
      socket.on('data', (chunk: Buffer) => chunks.push(chunk));
      socket.on('end', () => {
        ended = true;
      });
      socket.on('close', () => {
        closed = true;
      });
      socket.on('error', () => undefined);
      this.asked.push({
        socket,
        received: () => Buffer.concat(chunks),
        ended: () => ended,
        closed: () => closed,
      });
    });
  }

  static async open(): Promise<StandInSpawner> {
    const folder = ownFolder();
    const spawner = new StandInSpawner(folder.path, folder.remove);
    await new Promise<void>((resolve) => spawner.#server.listen(join(folder.path, 'spawner.sock'), resolve));
    return spawner;
  }

  override async ready(): Promise<void> {
    if (this.down) throw new Refusal('worker_unavailable');
  }

  /** The connection with this number, counted from 0, when its first message is in. */
  async connection(number: number): Promise<Asked> {
    return eventually(`connection ${number}`, () => {
      const asked = this.asked[number];
      return asked && asked.received().length >= 8 ? asked : undefined;
    });
  }

  close(): void {
    for (const { socket } of this.asked) socket.destroy();
    this.#server.close();
    this.#remove();
  }
}
