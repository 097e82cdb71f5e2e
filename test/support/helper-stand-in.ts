/**
 * Speaks as an fs helper does and does what a test wants of it: the path says what. As the user it writes each call
 * down in the file `calls` of the space it was given, so that a test can count.
 *
 * Started by the spawner as root, as the helper itself is.
 */
import { appendFileSync, existsSync, readSync, writeFileSync, writeSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

const read = (length: number): Buffer => {
  const bytes = Buffer.alloc(length);
  for (let have = 0; have < length; ) {
    const count = readSync(0, bytes, have, length - have, null);
    if (count === 0) process.exit(0);
    have += count;
  }
  return bytes;
};

const write = (bytes: Buffer): void => {
  for (let sent = 0; sent < bytes.length; ) sent += writeSync(1, bytes, sent);
};

const frame = (text: string): Buffer => {
  const head = Buffer.alloc(4);
  head.writeUInt32BE(Buffer.byteLength(text));
  return Buffer.concat([head, Buffer.from(text)]);
};

const say = (message: unknown): void => write(frame(JSON.stringify(message)));
const hear = () => JSON.parse(read(read(4).readUInt32BE()).toString()) as Record<string, string & number>;

const [mood = ''] = process.argv.slice(2);
if (mood === 'never-ready') await delay(1e9);
if (mood === 'dies-early') process.exit(1);
say({ kind: 'ready' });
// For whoever wants to see from outside that it has said so.
process.chdir('/proc');
const { uid = 0, space = '' } = hear();
if (!existsSync(space)) {
  say({ kind: 'refused', code: 'workspace_broken' });
  process.exit(0);
}
process.setgroups?.([]);
process.setgid?.(uid);
process.setuid?.(uid);
say({ kind: 'dropped' });

/** True for the first call of this kind with this path. */
const isFirst = (verb: string, path: string): boolean => {
  const mark = `${space}/first-${verb}-${path}`;
  if (existsSync(mark)) return false;
  writeFileSync(mark, '');
  return true;
};

const ways: Readonly<Record<string, (id: number) => unknown>> = {
  die: () => process.exit(3),
  hang: () => delay(1e9),
  garbage: () => write(frame('{"kind":')),
  'not-utf8': () => write(Buffer.from([0, 0, 0, 2, 0x22, 0xff])),
  'too-long': () => write(Buffer.from([0x7f, 0xff, 0xff, 0xff])),
  empty: () => write(Buffer.alloc(4)),
  'too-many': (id) => write(frame(`{"kind":"result","id":${id},"result":{"x":[${'[],'.repeat(100_000)}0]}}`)),
  'wrong-id': (id) => say({ kind: 'result', id: id + 1, result: {} }),
  'more-fields': (id) => say({ kind: 'result', id, result: {}, more: 1 }),
  'unknown-code': (id) => say({ kind: 'refused', id, code: 'uncertain' }),
  'says-twice': (id) => {
    const answer = frame(JSON.stringify({ kind: 'result', id, result: { pid: process.pid } }));
    write(Buffer.concat([answer, answer]));
  },
  refuse: (id) => say({ kind: 'refused', id, code: 'not_found' }),
  'wait-a-bit': async (id) => {
    await delay(300);
    say({ kind: 'result', id, result: { pid: process.pid } });
  },
};

for (;;) {
  const { id = 0, verb = '', project = '', path = project, content } = hear();
  appendFileSync(`${space}/calls`, `${verb} ${path}\n`);
  const once = path.startsWith('once-');
  const way = ways[once ? path.slice('once-'.length) : path];
  if (way && (!once || isFirst(verb, path))) await way(id);
  else say({ kind: 'result', id, result: { pid: process.pid, ids: process.getuid?.(), content: content ?? null } });
}
