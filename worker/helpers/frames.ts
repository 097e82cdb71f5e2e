/**
 * Purpose: frames between the worker and an fs helper (helper/contract/fs.ts), and what the helper may say in them.
 * Rights: none of its own. A helper runs as its user: its word is the user's.
 * Called by: fs-helper.ts.
 * Fails: closed. Whatever is not exactly a reply throws; the helper is then discarded.
 */
import { z } from 'zod';
import { type FsReply, type FsRequest, fsFrameBytesMax, fsRefusals } from '../../helper/contract/fs.ts';

const prefixBytes = 4;
/** Most values in one reply; the largest one that a helper means to give holds 2,000 entries of four. */
const valuesMax = 20_000;

/** The helper said something that the contract does not know: its word is worth nothing any more. */
export class HelperViolation extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'HelperViolation';
  }
}

const id = z.int().min(1);
const code = z.enum(fsRefusals);

/** The envelope. What a verb's result must look like is its handler's to check. */
const replySchema = z.union([
  z.strictObject({ kind: z.literal('ready') }),
  z.strictObject({ kind: z.literal('dropped') }),
  z.strictObject({ kind: z.literal('refused'), id: id.optional(), code }),
  z.strictObject({ kind: z.literal('result'), id, result: z.record(z.string(), z.unknown()) }),
]);

/** A reply with its result still unchecked. */
export type UncheckedReply = Exclude<FsReply, { kind: 'result' }> | { kind: 'result'; id: number; result: object };

/** One frame. @throws RangeError when the request is larger than a frame can be: a bug of whoever bounds requests */
export const encodeFrame = (request: FsRequest): Buffer => {
  const body = Buffer.from(JSON.stringify(request));
  if (body.length > fsFrameBytesMax) throw new RangeError('a request is larger than a frame can be');
  const frame = Buffer.allocUnsafe(prefixBytes + body.length);
  frame.writeUInt32BE(body.length, 0);
  frame.set(body, prefixBytes);
  return frame;
};

/** Millions of empty lists would become hundreds of MiB: they are counted before they are made. */
const countValues = (text: string): number => {
  let count = 1;
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charAt(at);
    if (character === ',' || character === '[' || character === '{') count += 1;
    if (character !== '"') continue;
    // To the end of the string: the next quote that no odd number of backslashes stands before.
    for (let escaped = true; escaped; ) {
      at = text.indexOf('"', at + 1);
      if (at < 0) return count;
      let slashes = 0;
      while (text.charAt(at - 1 - slashes) === '\\') slashes += 1;
      escaped = slashes % 2 === 1;
    }
  }
  return count;
};

/** @throws TypeError, SyntaxError or HelperViolation */
const readJson = (body: Buffer): unknown => {
  const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
  if (countValues(text) > valuesMax) throw new HelperViolation('a reply of too many values');
  return JSON.parse(text);
};

/** @throws an Error of whatever kind for what is no reply */
const readReply = (body: Buffer): UncheckedReply => {
  const outcome = replySchema.safeParse(readJson(body));
  if (!outcome.success) throw new HelperViolation('not a reply of the contract');
  const { data } = outcome;
  return data.kind === 'refused' && data.id === undefined
    ? { kind: 'refused', code: data.code }
    : (data as UncheckedReply);
};

/** Cuts what comes from a helper into replies; holds at most one unfinished one. */
export class FrameReader {
  #pieces: Buffer[] = [];
  #have = 0;

  /** Copies the piece. @throws an Error of whatever kind for what is no reply */
  *push(piece: Buffer): Generator<UncheckedReply, void, undefined> {
    this.#pieces.push(Buffer.from(piece));
    this.#have += piece.length;
    for (let body = this.#next(); body !== undefined; body = this.#next()) yield readReply(body);
  }

  #next(): Buffer | undefined {
    if (this.#have < prefixBytes) return undefined;
    if ((this.#pieces[0]?.length ?? 0) < prefixBytes) this.#pieces = [Buffer.concat(this.#pieces)];
    const length = this.#pieces[0]?.readUInt32BE(0) ?? 0;
    if (length === 0 || length > fsFrameBytesMax) throw new HelperViolation('a frame of a forbidden length');
    if (this.#have < prefixBytes + length) return undefined;
    const all = Buffer.concat(this.#pieces);
    const rest = all.subarray(prefixBytes + length);
    this.#pieces = rest.length === 0 ? [] : [rest];
    this.#have = rest.length;
    return all.subarray(prefixBytes, prefixBytes + length);
  }
}
