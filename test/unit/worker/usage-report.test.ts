import { describe, expect, it } from 'vitest';
import { usageEntriesMax, usageListedMax } from '../../../protocol/limits.ts';
import { usage } from '../../../protocol/operations/usage.ts';
import { readReport, reportBytesMax } from '../../../worker/usage/report.ts';

const records = (...texts: readonly (string | Buffer)[]): Buffer =>
  Buffer.concat(texts.flatMap((text) => [Buffer.from(text as string), Buffer.alloc(1)]));

const head = 'usage 1 15 3 4 1 0 0 2 1';
const items = ['13 2 home', '2 1 tmp', '13 2 home/repos/p'];

describe('a report', () => {
  it('is read as it was written', () => {
    expect(readReport(records(head, ...items))).toStrictEqual({
      bytes: 15,
      files: 3,
      dirs: 4,
      links: 1,
      truncated: false,
      top: [
        { name: 'home', bytes: 13, files: 2 },
        { name: 'tmp', bytes: 2, files: 1 },
      ],
      groups: [{ name: 'home/repos/p', bytes: 13, files: 2 }],
      groupsTruncated: false,
    });
    expect(readReport(records('usage 1 0 0 0 0 1 1 0 0'))).toMatchObject({ truncated: true, groupsTruncated: true });
  });

  it('has names of any bytes: what is not UTF-8 becomes U+FFFD', () => {
    const names = ['a b', '1 1 x', 'new\nline', '\ufeffbom', 'ä€😀', ' ', '-', '...', '.a', '..a'];
    const shares = names.map((name) => `0 0 home/work/c/${name}`);
    const read = readReport(records(`usage 1 0 0 0 0 0 0 0 ${names.length}`, ...shares));
    expect(read?.groups.map(({ name }) => name)).toEqual(names.map((name) => `home/work/c/${name}`));
    const bytes = Buffer.concat([Buffer.from('0 0 '), Buffer.from([0xff, 0xc3, 0x28, 0xf0, 0x9f])]);
    const name = readReport(records('usage 1 0 0 0 0 0 0 1 0', bytes))?.top[0]?.name;
    expect(name).toBe('\ufffd\ufffd(\ufffd');
    expect(name?.isWellFormed()).toBe(true);
  });

  it('at its largest is still taken, and fits the operation’s row', () => {
    const largest = Number.MAX_SAFE_INTEGER;
    const name = 'x'.repeat(255);
    const number = `${largest} ${usageEntriesMax}`;
    const top = Array.from({ length: usageListedMax }, () => `${number} ${name}`);
    const groups = Array.from({ length: usageListedMax }, () => `${number} home/work/${name}/${name}`);
    const first = `usage 1 ${largest} ${usageEntriesMax} 0 0 1 1 ${usageListedMax} ${usageListedMax}`;
    const output = records(first, ...top, ...groups);
    expect(output.length).toBeLessThanOrEqual(reportBytesMax);
    const report = readReport(output);
    const result = {
      ...report,
      user: 1,
      limitBytes: 0,
      over: false,
      groups: report?.groups.map(({ name: path, ...share }) => ({ path, ...share })),
    };
    expect(usage.result.safeParse(result).error).toBeUndefined();
  });
});

describe('what is no report', () => {
  const lines = (change: (lines: string[]) => void): Buffer => {
    const changed = [head, ...items];
    change(changed);
    return records(...changed);
  };
  const withHead = (text: string): Buffer => lines((all) => all.splice(0, 1, text));
  const withItem = (at: number, text: string): Buffer => lines((all) => all.splice(at, 1, text));

  it.each<[string, Buffer]>([
    ['nothing', Buffer.alloc(0)],
    ['a NUL', Buffer.alloc(1)],
    ['text', Buffer.from('usage: no\n')],
    ['one without its last NUL', lines(() => undefined).subarray(0, -1)],
    ['one with something after it', Buffer.concat([lines(() => undefined), Buffer.from('x')])],
    ['one with a record more', lines((all) => all.push('0 0 home/repos/q'))],
    ['one with a record less', lines((all) => all.pop())],
    ['one with an empty record more', lines((all) => all.push(''))],
    ['two', Buffer.concat([lines(() => undefined), lines(() => undefined)])],
    ['another version', withHead('usage 2 15 3 4 1 0 0 2 1')],
    ['another word', withHead('Usage 1 15 3 4 1 0 0 2 1')],
    ['a line before it', withHead(`x\n${head}`)],
    ['a line after its head', withHead(`${head}\n`)],
    ['a number less', withHead('usage 1 15 3 4 1 0 0 2')],
    ['a number more', withHead(`${head} 0`)],
    ['two spaces', withHead('usage 1 15 3  4 1 0 0 2 1')],
    ['a negative number', withHead('usage 1 -15 3 4 1 0 0 2 1')],
    ['a leading zero', withHead('usage 1 015 3 4 1 0 0 2 1')],
    ['a fraction', withHead('usage 1 15.0 3 4 1 0 0 2 1')],
    ['an exponent', withHead('usage 1 1e9 3 4 1 0 0 2 1')],
    ['a hexadecimal number', withHead('usage 1 0xf 3 4 1 0 0 2 1')],
    ['a number that is not exact', withHead('usage 1 9007199254740993 3 4 1 0 0 2 1')],
    ['a very long number', withHead(`usage 1 ${'9'.repeat(400)} 3 4 1 0 0 2 1`)],
    ['more files than entries', withHead('usage 1 15 500001 0 0 0 0 2 1')],
    ['more entries in all', withHead('usage 1 15 300000 200000 1 0 0 2 1')],
    ['a flag of 2', withHead('usage 1 15 3 4 1 2 0 2 1')],
    ['the counts the other way round', withHead('usage 1 15 3 4 1 0 0 1 2')],
    ['a count beyond the list', withHead('usage 1 15 3 4 1 0 0 2 2')],
    ['a count beyond all lists', withHead('usage 1 15 3 4 1 0 0 1001 1')],
    ['a share larger than the whole', withItem(1, '16 2 home')],
    ['a share of more files', withItem(1, '13 4 home')],
    ['a share that is not exact', withItem(1, '99999999999999999999 2 home')],
    ['a share without a name', withItem(1, '13 2 ')],
    ['a share without a number', withItem(1, '13 home')],
    ['a name with a slash', withItem(1, '13 2 home/x')],
    ['the name .', withItem(1, '13 2 .')],
    ['the name ..', withItem(1, '13 2 ..')],
    ['a name that is too long', withItem(1, `13 2 ${'x'.repeat(256)}`)],
    ['a group elsewhere', withItem(3, '1 1 home/other/p')],
    ['a group in tmp', withItem(3, '1 1 tmp/repos/p')],
    ['an absolute group', withItem(3, '1 1 /home/repos/p')],
    ['a group too high', withItem(3, '1 1 home/repos')],
    ['a group without a name', withItem(3, '1 1 home/repos/')],
    ['a group too deep', withItem(3, '1 1 home/repos/p/q')],
    ['a worktree too high', withItem(3, '1 1 home/work/c')],
    ['a group that is ..', withItem(3, '1 1 home/repos/..')],
    ['a worktree through ..', withItem(3, '1 1 home/work/../p')],
    ['a worktree through .', withItem(3, '1 1 home/work/./p')],
    ['one that is too long', Buffer.alloc(reportBytesMax + 1)],
  ])('%s', (_name, output) => {
    expect(readReport(lines(() => undefined))).toBeDefined();
    expect(readReport(output)).toBeUndefined();
  });

  it('however it is cut or one of its bytes is another', () => {
    const whole = lines(() => undefined);
    for (let length = 0; length < whole.length; length += 1) {
      expect(readReport(whole.subarray(0, length)), `${length} bytes`).toBeUndefined();
    }
    for (let at = 0; at < whole.length; at += 1) {
      for (const byte of [0, 0x0a, 0x20, 0x2d, 0x2f, 0x39, 0xff]) {
        const changed = Buffer.from(whole);
        changed[at] = byte;
        const read = readReport(changed);
        // Names are the user's; numbers stay numbers of the row.
        if (read)
          expect(Number.isSafeInteger(read.bytes) && read.files <= usageEntriesMax, `${byte} at ${at}`).toBe(true);
      }
    }
  });
});
