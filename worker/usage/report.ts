/**
 * Purpose: reads the report of a count (helper/native/usage-report.h).
 * Rights: none of its own.
 * Called by: scan.ts.
 * Fails: closed. The report comes from a process with the user's uid, so it is the user's word: whatever is not
 * exactly a report is none. What a user can do at most is to lie about the own space.
 */
import { usageEntriesMax, usageListedMax } from '../../protocol/limits.ts';

/** Something named, and what it holds. */
export interface Share {
  /** Bytes that are not UTF-8 have become U+FFFD. */
  readonly name: string;
  readonly bytes: number;
  readonly files: number;
}

/** What a space holds. */
export interface UsageReport {
  /** Apparent sizes of regular files. */
  readonly bytes: number;
  readonly files: number;
  readonly dirs: number;
  readonly links: number;
  /** The entries ran out: there is more than was counted. */
  readonly truncated: boolean;
  /** The space's direct entries, largest first. */
  readonly top: readonly Share[];
  /** Clones and worktrees by their paths in the space, largest first. */
  readonly groups: readonly Share[];
  /** There are more groups than these. */
  readonly groupsTruncated: boolean;
}

/** A report is never longer, bytes: the two lists with the longest names and numbers, and the head. */
export const reportBytesMax = usageListedMax * (255 + 40) + usageListedMax * (521 + 40) + 256;

const number = '(0|[1-9][0-9]{0,15})';
const head = new RegExp(`^usage 1 ${Array(4).fill(number).join(' ')} ([01]) ([01]) ${number} ${number}$`);
const item = new RegExp(`^${number} ${number} ([^]+)$`);
/** One name, bytes as Latin-1 characters. */
const name = '(?!\\.{1,2}(?:/|$))[^/]{1,255}';
const topName = new RegExp(`^${name}$`);
const groupPath = new RegExp(`^home/(?:repos|work/${name})/${name}$`);

const isCount = (value: number): boolean => value <= usageEntriesMax;

/** One item of a list; undefined when it can't be one. */
const shareOf = (record: string, names: RegExp, whole: Pick<Share, 'bytes' | 'files'>): Share | undefined => {
  const [, bytes, files, bytesOfName = ''] = item.exec(record) ?? [];
  const share = { bytes: Number(bytes), files: Number(files) };
  const fits = share.bytes <= whole.bytes && share.files <= whole.files && names.test(bytesOfName);
  return fits ? { name: Buffer.from(bytesOfName, 'latin1').toString(), ...share } : undefined;
};

/** Reads a report; undefined if it isn't one. */
export const readReport = (output: Buffer): UsageReport | undefined => {
  if (output.length > reportBytesMax || output.at(-1) !== 0) return undefined;
  // Latin-1 keeps every byte as one character, so that records and names can be told apart before they become text.
  const [first = '', ...records] = output.toString('latin1').slice(0, -1).split('\0');
  const found = head.exec(first);
  if (!found) return undefined;
  const [bytes = Number.NaN, files = Number.NaN, dirs = Number.NaN, links = Number.NaN] = found.slice(1, 5).map(Number);
  const [topCount = Number.NaN, groupCount = Number.NaN] = found.slice(7).map(Number);
  const isSound =
    Number.isSafeInteger(bytes) &&
    isCount(files + dirs + links) &&
    topCount <= usageListedMax &&
    groupCount <= usageListedMax &&
    records.length === topCount + groupCount;
  if (!isSound) return undefined;
  const whole = { bytes, files };
  const shares = records.map((record, index) => shareOf(record, index < topCount ? topName : groupPath, whole));
  if (!shares.every((share) => share !== undefined)) return undefined;
  return {
    ...whole,
    dirs,
    links,
    truncated: found[5] === '1',
    top: shares.slice(0, topCount),
    groups: shares.slice(topCount),
    groupsTruncated: found[6] === '1',
  };
};
