/**
 * Purpose: where a piece of UTF-8 can be cut.
 * Rights: none. Pure.
 * Called by: read.ts.
 */

/** Least and greatest second byte after these first ones (RFC 3629, 4); after all others 0x80 to 0xBF. */
const secondBytes: Readonly<Record<number, readonly [number, number]>> = {
  224: [0xa0, 0xbf],
  237: [0x80, 0x9f],
  240: [0x90, 0xbf],
  244: [0x80, 0x8f],
};

const lengthBy = (first: number): number => {
  if (first >= 0xc2 && first <= 0xdf) return 2;
  if (first >= 0xe0 && first <= 0xef) return 3;
  return first >= 0xf0 && first <= 0xf4 ? 4 : 1;
};

/** How many bytes at the end are the beginning of a character that what follows may complete; 0 to 3. */
export const unfinishedBytes = (bytes: Uint8Array): number => {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const first = bytes[bytes.length - back] ?? 0;
    // A byte in the middle of a character: its first one lies before.
    if (first >= 0x80 && first <= 0xbf) continue;
    if (lengthBy(first) <= back) return 0;
    const second = back > 1 ? bytes[bytes.length - back + 1] : undefined;
    const [least, greatest] = secondBytes[first] ?? [0x80, 0xbf];
    return second !== undefined && (second < least || second > greatest) ? 0 : back;
  }
  return 0;
};
