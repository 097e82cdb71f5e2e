import { isUtf8 } from 'node:buffer';
import { messageDepthMax, messageValuesMax } from './limits.ts';

/** The other side of the link broke the protocol: the link ends, and with it every run that was asked for over it. */
export class ProtocolViolation extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ProtocolViolation';
  }
}

const fail = (reason: string): never => {
  throw new ProtocolViolation(reason);
};

/** A container that is still open: what it holds so far, how many entries it lacks, and a map's key that waits. */
type Open =
  | { missing: number; readonly list: unknown[]; readonly map?: never }
  | { missing: number; readonly map: Record<string, unknown>; key: string | undefined; readonly list?: never };

/**
 * Checks and decodes bytes from the other side. msgpackr's own decoder is not used: it takes duplicate and
 * integer keys, 0xC1, extensions, NaN, 64-bit integers beyond 2^53, invalid UTF-8, any depth and a `__proto__`
 * key, and drops a U+FEFF at the start of every string over 64 bytes; each of these could make the two sides
 * understand one message differently.
 *
 * Takes exactly one complete value of: nil, booleans, safe integers, finite floats, UTF-8 strings, binary,
 * arrays, and maps with unique string keys, nested at most `messageDepthMax` deep, at most `messageValuesMax` of them. One pass; nothing is
 * allocated by a declared length, only for bytes that are there.
 * Source: the msgpack specification; specification, Protocol, "Transport".
 * @throws ProtocolViolation
 */
export const checkMessage = (bytes: Buffer): unknown => {
  const open: Open[] = [];
  let at = 0;

  const need = (count: number): number => {
    const start = at;
    if (count > bytes.length - at) fail('a value is cut off');
    at += count;
    return start;
  };
  const uint = (size: 1 | 2 | 4): number => bytes.readUIntBE(need(size), size);
  const int = (size: 1 | 2 | 4): number => bytes.readIntBE(need(size), size);

  const string = (length: number): string => {
    const start = need(length);
    const part = bytes.subarray(start, at);
    return isUtf8(part) ? part.toString('utf8') : fail('a string is not UTF-8');
  };
  const binary = (length: number): Uint8Array => {
    const start = need(length);
    return new Uint8Array(bytes.subarray(start, at));
  };
  const container = (opened: Open): unknown => {
    if (open.length >= messageDepthMax) fail('too deep');
    open.push(opened);
    return opened.list ?? opened.map;
  };
  const array = (missing: number): unknown => container({ missing, list: [] });
  const map = (missing: number): unknown => container({ missing, map: {}, key: undefined });
  const safe = (value: bigint): number => {
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : fail('an integer is not safe');
  };
  const finite = (value: number): number => (Number.isFinite(value) ? value : fail('a number is not finite'));

  /** Reads one value's own bytes; a container is opened, and filled by what follows. */
  const value = (): unknown => {
    const tag = uint(1);
    if (tag <= 0x7f) return tag;
    if (tag >= 0xe0) return tag - 0x100;
    if (tag <= 0x8f) return map(tag & 0x0f);
    if (tag <= 0x9f) return array(tag & 0x0f);
    if (tag <= 0xbf) return string(tag & 0x1f);
    switch (tag) {
      case 0xc0:
        return null;
      case 0xc2:
      case 0xc3:
        return tag === 0xc3;
      case 0xc4:
        return binary(uint(1));
      case 0xc5:
        return binary(uint(2));
      case 0xc6:
        return binary(uint(4));
      case 0xca:
        return finite(bytes.readFloatBE(need(4)));
      case 0xcb:
        return finite(bytes.readDoubleBE(need(8)));
      case 0xcc:
        return uint(1);
      case 0xcd:
        return uint(2);
      case 0xce:
        return uint(4);
      case 0xcf:
        return safe(bytes.readBigUInt64BE(need(8)));
      case 0xd0:
        return int(1);
      case 0xd1:
        return int(2);
      case 0xd2:
        return int(4);
      case 0xd3:
        return safe(bytes.readBigInt64BE(need(8)));
      case 0xd9:
        return string(uint(1));
      case 0xda:
        return string(uint(2));
      case 0xdb:
        return string(uint(4));
      case 0xdc:
        return array(uint(2));
      case 0xdd:
        return array(uint(4));
      case 0xde:
        return map(uint(2));
      case 0xdf:
        return map(uint(4));
      default:
        return fail('an extension or unused type');
    }
  };

  let whole: unknown;
  let values = 0;
  do {
    values += 1;
    if (values > messageValuesMax) fail('too many values');
    const parent = open.at(-1);
    const read = value();
    if (parent === undefined) whole = read;
    else if (parent.list) {
      parent.list.push(read);
      parent.missing -= 1;
    } else if (parent.key !== undefined) {
      parent.map[parent.key] = read;
      parent.key = undefined;
      parent.missing -= 1;
    } else if (typeof read !== 'string') fail('a key is not a string');
    else if (read === '__proto__' || Object.hasOwn(parent.map, read)) fail('a key is forbidden or doubled');
    else parent.key = read;
    while (open.at(-1)?.missing === 0) open.pop();
  } while (open.length > 0);

  if (at !== bytes.length) fail('bytes follow the value');
  return whole;
};
