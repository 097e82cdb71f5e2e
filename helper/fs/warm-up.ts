/**
 * Purpose: does once, before there is a user, what a first call does: what Node loads, compiles and makes on first use
 * is then there, and the first operation of a user doesn't wait for it.
 * Rights: root's, used on this program's own folder and on /proc/self alone; nothing of a user's is touched.
 * Called by: main.ts, before it says that it is ready.
 * Fails: throws; a helper that can't do this can't serve either, and ends.
 */
import { closeSync, constants, openSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { oPath } from './descriptor.ts';
import { holdSpace, threadsAre, verifyDescriptors } from './drop.ts';
import { parseBody } from './frames.ts';
import { parseRequest } from './requests.ts';
import { list } from './verbs/list.ts';
import { read } from './verbs/read.ts';

const here = fileURLToPath(import.meta.url);

/** Rehearses the looking of a first call. */
export const warmUp = (): void => {
  parseRequest(parseBody(Buffer.from('{"kind":"call","id":1,"verb":"list","path":"","entriesMax":1}')));
  const space = holdSpace(dirname(here), process.getuid?.() ?? 0);
  if (space !== undefined) closeSync(space);
  const folder = openSync(dirname(here), oPath | constants.O_NOFOLLOW);
  try {
    JSON.stringify(list(folder, { path: '', entriesMax: 2 }));
    JSON.stringify(read(folder, { path: basename(here), bytesMax: 65_536, probeBytes: 8_192 }));
  } finally {
    closeSync(folder);
  }
  threadsAre(0);
  verifyDescriptors();
};
