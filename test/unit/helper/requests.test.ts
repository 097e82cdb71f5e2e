import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fsFrameBytesMax, fsVerbs } from '../../../helper/contract/fs.ts';
import { parseRequest } from '../../../helper/fs/requests.ts';
import { frameBytesMax, listEntriesMax, readBytesMax, readProbeBytes } from '../../../protocol/limits.ts';

const become = { kind: 'become', uid: 20_007, space: '/work/u20007' };
const call = { kind: 'call', id: 1 };
const calls = {
  list: { ...call, verb: 'list', path: 'a/b', entriesMax: listEntriesMax },
  read: { ...call, verb: 'read', path: '', bytesMax: readBytesMax, probeBytes: readProbeBytes },
  write: { ...call, verb: 'write', path: 'a', content: 'ü\0' },
  delete: { ...call, verb: 'delete', path: 'a' },
  reset: { ...call, verb: 'reset' },
  repository: { ...call, verb: 'repository', project: 'a__b', worktree: 'work/agent-1/a__b' },
  scratch: { ...call, verb: 'scratch', clean: { format: 'sha256', borrows: 'a__b' } },
  unregister: {
    ...call,
    verb: 'unregister',
    project: 'p',
    worktree: 'work/1/p',
    refs: ['refs/heads/chat/1', 'refs/remotes/origin/ü', 'refs/lost/chat/1/10'],
  },
  place: { ...call, verb: 'place', path: 'work/1/p', project: 'p' },
  clear: { ...call, verb: 'clear' },
} as const;
/** What a field takes beside: null where the contract has it, and an empty list. */
const without: readonly Readonly<Record<string, unknown>>[] = [
  { ...calls.repository, worktree: null },
  { ...calls.scratch, clean: null },
  { ...calls.scratch, clean: { format: 'sha1', borrows: null } },
  { ...calls.unregister, refs: [] },
  { ...calls.place, path: 'repos/p' },
  { ...calls.place, project: null },
];
const good: readonly object[] = [become, ...Object.values(calls)];

/** Values that no field takes, beside those that some do. */
const odd: readonly unknown[] = [
  undefined,
  null,
  true,
  -1,
  1.5,
  Number.NaN,
  2 ** 53,
  '\ud800',
  [],
  {},
  ['x'],
  { toString: 1 },
];

describe('the messages of the worker', () => {
  it('are all taken, as they are', () => {
    expect(Object.keys(calls)).toStrictEqual([...fsVerbs]);
    for (const message of [...good, ...without]) expect(parseRequest(message)).toBe(message);
  });

  it('are taken with exactly their fields', () => {
    for (const message of good) {
      for (const field of Object.keys(message)) {
        const { [field]: _, ...rest } = message as Record<string, unknown>;
        expect(() => parseRequest(rest), field).toThrow(TypeError);
        for (const value of odd) {
          const changed = { ...message, [field]: value };
          if (without.some((taken) => isDeepStrictEqual(taken, changed))) continue;
          expect(() => parseRequest(changed), field).toThrow(TypeError);
        }
      }
      expect(() => parseRequest({ ...message, more: 1 })).toThrow(TypeError);
      expect(() => parseRequest(JSON.parse(`{"__proto__":1,${JSON.stringify(message).slice(1)}`))).toThrow(TypeError);
    }
  });

  it.each([
    ['root', { ...become, uid: 0 }],
    ['the service’s own uid', { ...become, uid: 19_999 }],
    ['a uid above the users’', { ...become, uid: 1_020_001 }],
    ['a relative space', { ...become, space: 'work' }],
    ['a space with NUL', { ...become, space: '/a\0' }],
    ['a verb of Object.prototype', { ...call, verb: 'constructor' }],
    ['a verb as a list', { ...calls.reset, verb: ['reset'] }],
    ['no entries', { ...calls.list, entriesMax: 0 }],
    ['more entries than a frame holds', { ...calls.list, entriesMax: 2_001 }],
    ['more content than a frame holds', { ...calls.read, bytesMax: 512 * 1024 + 1 }],
    ['call 0', { ...calls.reset, id: 0 }],
    ['a project with ".."', { ...calls.repository, project: 'a..b' }],
    ['a project that is a path', { ...calls.repository, project: 'a/b' }],
    ['a project that starts with a dot', { ...calls.scratch, clean: { format: 'sha1', borrows: '.git' } }],
    ['a project that looks like an option', { ...calls.place, project: '-p' }],
    ['a project of 256 characters', { ...calls.unregister, project: 'p'.repeat(256) }],
    ['a worktree of no conversation', { ...calls.repository, worktree: 'work/p' }],
    ['a worktree deeper than that', { ...calls.unregister, worktree: 'work/1/p/x' }],
    ['a worktree elsewhere', { ...calls.unregister, worktree: 'repos/1/p' }],
    ['an absolute worktree', { ...calls.unregister, worktree: '/work/1/p' }],
    ['a worktree with ".."', { ...calls.repository, worktree: 'work/../p' }],
    ['a place inside a clone', { ...calls.place, path: 'repos/p/.git' }],
    ['a place elsewhere', { ...calls.place, path: 'x/p' }],
    ['the place of all', { ...calls.place, path: 'repos' }],
    ['another format', { ...calls.scratch, clean: { format: 'md5', borrows: null } }],
    ['a clean repository with more', { ...calls.scratch, clean: { format: 'sha1', borrows: null, more: 1 } }],
    ['a clean repository with less', { ...calls.scratch, clean: { format: 'sha1' } }],
    ['nine refs', { ...calls.unregister, refs: new Array(9).fill('refs/heads/a') }],
    ['a list', [become]],
    ['null', null],
    ['text', 'become'],
  ])('%s is none', (_name, message) => {
    expect(() => parseRequest(message)).toThrow(TypeError);
  });

  it.each([
    'heads/a',
    'refs',
    'refs/',
    '/refs/a',
    '../refs/a',
    'refs//a',
    'refs/heads/..',
    'refs/a/../b',
    'refs/a..b',
    'refs/.a',
    'refs/a b',
    'refs/a\0',
    'refs/a\n',
    'refs/\ud800',
    `refs/${'a'.repeat(5_000)}`,
  ])('name no ref such as %j', (ref) => {
    expect(() => parseRequest({ ...calls.unregister, refs: ['refs/heads/a', ref] })).toThrow(TypeError);
  });

  it('are nothing else, whatever JSON holds', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 3 }), (text) => {
        expect(() => parseRequest(JSON.parse(text))).toThrow(TypeError);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('every message fits a frame', () => {
  it('a list of the longest names that there can be', () => {
    // A control character is the longest in JSON: six characters for its one byte.
    const worst = {
      name: '\u0001'.repeat(255),
      kind: 'symlink',
      size: 2 ** 53 - 1,
      modified: '9999-12-31T23:59:59.999Z',
    };
    const entries = new Array(2_000).fill(worst);
    const reply = { kind: 'result', id: 2 ** 53 - 1, result: { entries, truncated: false } };
    expect(Buffer.byteLength(JSON.stringify(reply))).toBeLessThan(fsFrameBytesMax);
  });

  it('a byte of a name or content is never more than six characters of JSON', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const json = Buffer.byteLength(JSON.stringify(Buffer.from(bytes).toString('utf8'))) - 2;
        expect(json).toBeLessThanOrEqual(6 * bytes.length);
      }),
      { numRuns: 2_000 },
    );
  });

  it('the largest content that can be asked for', () => {
    const result = { size: 2 ** 53 - 1, text: true, content: '\u0001'.repeat(512 * 1024), reason: null };
    const reply = { kind: 'result', id: 2 ** 53 - 1, result };
    expect(Buffer.byteLength(JSON.stringify(reply))).toBeLessThan(fsFrameBytesMax);
  });

  it('a call is never longer than the request body that it came in, and its few fields', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (content) => {
        if (!content.isWellFormed()) return;
        // However a caller writes the same text in JSON, it can't be shorter.
        const body = [...content].map((unit) => (/["\\\p{Cc}]/u.test(unit) ? JSON.stringify(unit).slice(1, -1) : unit));
        expect(Buffer.byteLength(JSON.stringify(content))).toBeLessThanOrEqual(Buffer.byteLength(body.join('')) + 2);
      }),
    );
    const fields = JSON.stringify({ ...calls.write, id: 2 ** 53 - 1, path: '', content: '' });
    // The largest RUNNER_MAX_BODY_BYTES leaves 64 KiB of a frame.
    expect(Buffer.byteLength(fields)).toBeLessThan(64 * 1024);
    expect(frameBytesMax).toBe(fsFrameBytesMax);
  });
});
