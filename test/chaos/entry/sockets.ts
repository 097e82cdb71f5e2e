/**
 * Strikes a connection in the middle of what it writes: some of the bytes reach the kernel, and then it happens.
 * Node's streams gather what is written; `_writeGeneric` is where all of it goes out.
 */
import { writeSync } from 'node:fs';
import { Socket } from 'node:net';
import type { Order } from '../control.ts';
import { strike } from './fault.ts';

/** How much of what is written comes out before the blow. */
export type Amount = 'none' | 'half' | 'all';

interface Blow {
  readonly order: Order;
  readonly operationId: string | undefined;
  readonly amount: Amount;
  /** Of the last thing that was written, bytes; undefined: all that goes out at once. `half` is half of it. */
  readonly lastBytes?: number;
}

interface Piece {
  readonly chunk: Buffer | string;
  readonly encoding: BufferEncoding;
}

/** What Node does not declare. */
interface Inner {
  _writeGeneric(many: boolean, data: unknown, encoding: BufferEncoding, done: (error?: Error | null) => void): void;
  readonly _handle: { readonly fd: number };
}

const armed = new WeakMap<Socket, Blow>();

/** The next thing that this socket writes is struck. */
export const arm = (socket: Socket, blow: Blow): void => void armed.set(socket, blow);

const bytesOf = (many: boolean, data: unknown, encoding: BufferEncoding): Buffer => {
  if (many) return Buffer.concat((data as Piece[]).map((piece) => bytesOf(false, piece.chunk, piece.encoding)));
  return typeof data === 'string' ? Buffer.from(data, encoding) : (data as Buffer);
};

const lengthOut = ({ amount, lastBytes }: Blow, total: number): number => {
  if (amount === 'all') return total;
  const last = lastBytes ?? total;
  return total - (amount === 'none' ? last : Math.ceil(last / 2));
};

const inner = Socket.prototype as unknown as Inner;
const writeGeneric = inner._writeGeneric;
inner._writeGeneric = function (this: Socket & Inner, many, data, encoding, done): void {
  const blow = armed.get(this);
  // One that is still connecting comes here again.
  if (blow === undefined || this.connecting) {
    writeGeneric.call(this, many, data, encoding, done);
    return;
  }
  armed.delete(this);
  const bytes = bytesOf(many, data, encoding);
  for (let out = 0, end = lengthOut(blow, bytes.length); out < end; )
    out += writeSync(this._handle.fd, bytes, out, end - out);
  // Already done by another one under the same key: then this one stays a cut connection, which is a fault as well.
  if (!strike(blow.order, blow.operationId, () => this.destroy())) this.destroy();
  done();
};
