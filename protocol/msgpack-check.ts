import { isUtf8 } from 'node:buffer';
import { messageDepthMax } from './limits.ts';

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

/** Containers that are still open: how many values they lack, and for maps the keys seen so far. */
interface Open {
  missing: number;
  readonly keys: Set<string> | undefined;
}

/**
 * Checks bytes from the other side before the decoder sees them. msgpackr by itself takes duplicate and
 * integer keys, 0xC1, extensions, NaN, 64-bit integers beyond 2^53, invalid UTF-8 and any depth, and a
 * `__proto__` key; each of these could make the two sides understand one message differently.
 *
 * Accepts exactly one complete value of: nil, booleans, safe integers, finite floats, UTF-8 strings, binary,
 * arrays, and maps with unique string keys, nested at most `messageDepthMax` deep. One pass, no allocation
 * but the key sets.
 * Source: the msgpack specification; specification, Protocol, "Transport".
 * @throws ProtocolViolation
 */
export const checkMessage = (bytes: Buffer): void => {
  const open: Open[] = [];
  let at = 0;

  const need = (count: number): number => {
    const start = at;
    if (count > bytes.length - at) fail('a value is cut off');
    at += count;
    return start;
  };
  const uint = (size: 1 | 2 | 4): number => bytes.readUIntBE(need(size), size);

  const string = (length: number): string => {
    const start = need(length);
    const part = bytes.subarray(start, at);
    if (!isUtf8(part)) fail('a string is not UTF-8');
    const isKey = open.at(-1)?.keys !== undefined;
    return isKey ? part.toString('latin1') : '';
  };
  const container = (items: number, keys: Set<string> | undefined): void => {
    if (open.length >= messageDepthMax) fail('too deep');
    open.push({ missing: items, keys });
  };
  const safeInt64 = (value: bigint): void => {
    if (value > BigInt(Number.MAX_SAFE_INTEGER) || value < BigInt(Number.MIN_SAFE_INTEGER))
      fail('an integer is not safe');
  };
  const finite = (value: number): void => {
    if (!Number.isFinite(value)) fail('a number is not finite');
  };

  /** Reads one value's own bytes; returns the text (as latin1) if it was a string. */
  const value = (): string | undefined => {
    const tag = uint(1);
    if (tag <= 0x7f || tag >= 0xe0) return undefined;
    if (tag <= 0x8f) return void container((tag & 0x0f) * 2, new Set());
    if (tag <= 0x9f) return void container(tag & 0x0f, undefined);
    if (tag <= 0xbf) return string(tag & 0x1f);
    switch (tag) {
      case 0xc0:
      case 0xc2:
      case 0xc3:
        return undefined;
      case 0xc4:
        return void need(uint(1));
      case 0xc5:
        return void need(uint(2));
      case 0xc6:
        return void need(uint(4));
      case 0xca:
        return void finite(bytes.readFloatBE(need(4)));
      case 0xcb:
        return void finite(bytes.readDoubleBE(need(8)));
      case 0xcc:
      case 0xd0:
        return void need(1);
      case 0xcd:
      case 0xd1:
        return void need(2);
      case 0xce:
      case 0xd2:
        return void need(4);
      case 0xcf:
        return void safeInt64(bytes.readBigUInt64BE(need(8)));
      case 0xd3:
        return void safeInt64(bytes.readBigInt64BE(need(8)));
      case 0xd9:
        return string(uint(1));
      case 0xda:
        return string(uint(2));
      case 0xdb:
        return string(uint(4));
      case 0xdc:
        return void container(uint(2), undefined);
      case 0xdd:
        return void container(uint(4), undefined);
      case 0xde:
        return void container(uint(2) * 2, new Set());
      case 0xdf:
        return void container(uint(4) * 2, new Set());
      default:
        return fail('an extension or unused type');
    }
  };

  do {
    const parent = open.at(-1);
    const isKey = parent?.keys !== undefined && parent.missing % 2 === 0;
    if (parent) parent.missing -= 1;
    const text = value();
    if (isKey && parent?.keys) {
      if (text === undefined) fail('a key is not a string');
      else if (text === '__proto__' || parent.keys.has(text)) fail('a key is forbidden or doubled');
      else parent.keys.add(text);
    }
    while (open.at(-1)?.missing === 0) open.pop();
  } while (open.length > 0);

  if (at !== bytes.length) fail('bytes follow the value');
};
