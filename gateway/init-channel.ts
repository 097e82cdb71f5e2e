import { Socket } from 'node:net';

/** What this process and its parent say to each other, one byte each; the rest is silence. */
const readyByte = 'R';
const drainByte = 'D'.charCodeAt(0);

/** What the parent can make happen. */
export interface InitEvents {
  /** It asks for a stop. */
  drain(): void;
  /** It is gone. */
  gone(): void;
}

/** This end of the socket pair to the parent, the native init. */
export class InitChannel {
  readonly #socket: Socket;

  constructor(descriptor: number, events: InitEvents) {
    this.#socket = new Socket({ fd: descriptor, readable: true, writable: true });
    this.#socket.on('data', (bytes: Buffer) => {
      if (bytes.includes(drainByte)) events.drain();
    });
    this.#socket.on('error', () => events.gone());
    this.#socket.on('close', () => events.gone());
  }

  /** Tells the parent that requests can be served. */
  ready(): void {
    this.#socket.write(readyByte);
  }
}
