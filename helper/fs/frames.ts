/**
 * Purpose: frames on standard input and output, one at a time. Everything waits in the system call: there is
 * no event loop at work and no thread pool.
 * Rights: none.
 * Called by: main.ts.
 * Fails: throws for whatever is no frame, or would be none.
 */
import { readSync, writeSync } from 'node:fs';
import { type FsReply, fsFrameBytesMax } from '../contract/fs.ts';

const prefixBytes = 4;

/** Reads exactly that many bytes; undefined when the input ends before the first. */
const readExactly = (length: number): Buffer | undefined => {
  const bytes = Buffer.allocUnsafe(length);
  for (let filled = 0; filled < length; ) {
    const count = readSync(0, bytes, filled, length - filled, null);
    if (count === 0 && filled === 0) return undefined;
    if (count === 0) throw new RangeError('the input ends within a frame');
    filled += count;
  }
  return bytes;
};

/** @throws when it is no strict UTF-8 JSON */
export const parseBody = (body: Buffer): unknown =>
  JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body));

/**
 * The next message, undecided about its meaning; undefined at the end of the input.
 * @throws when it is no frame of strict UTF-8 JSON
 */
export const readMessage = (): unknown => {
  const prefix = readExactly(prefixBytes);
  if (prefix === undefined) return undefined;
  const length = prefix.readUInt32BE(0);
  if (length === 0 || length > fsFrameBytesMax) throw new RangeError('a frame has a forbidden length');
  const body = readExactly(length);
  if (body === undefined) throw new RangeError('the input ends within a frame');
  return parseBody(body);
};

/** @throws RangeError when it would be larger than a frame can be; see the proof beside each verb that such can't be */
export const writeMessage = (message: FsReply): void => {
  const body = Buffer.from(JSON.stringify(message), 'utf8');
  if (body.length > fsFrameBytesMax) throw new RangeError('a message is larger than a frame can be');
  const frame = Buffer.allocUnsafe(prefixBytes + body.length);
  frame.writeUInt32BE(body.length, 0);
  frame.set(body, prefixBytes);
  for (let sent = 0; sent < frame.length; ) sent += writeSync(1, frame, sent);
};
