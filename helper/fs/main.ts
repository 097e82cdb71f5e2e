/**
 * Purpose: the fs helper: waits as root until it is told whose it is, becomes that user for good, then does that user's
 * file operations, one at a time.
 * Rights in: uid 0 with CAP_SETUID and CAP_SETGID, no_new_privs, limits set. Rights out: the user's.
 * Called by: the native spawner, for the worker. Descriptors 0 (requests) and 1 (replies), an empty environment.
 * Fails: a refused operation is an answer. Whatever is not of the contract, or unforeseen, ends the process without
 * a word (a message could hold names or contents); the worker knows what that means for what was under way.
 */
import type { FsCall, FsRefusalCode, FsReply, FsRequest, FsResults, FsVerb } from '../contract/fs.ts';
import { withHome } from './beneath.ts';
import { drop, holdSpace } from './drop.ts';
import { readMessage, writeMessage } from './frames.ts';
import { errnoOf, FsRefusal } from './refusal.ts';
import { parseRequest } from './requests.ts';
import { clearLeftovers } from './space.ts';
import { remove } from './verbs/delete.ts';
import { list } from './verbs/list.ts';
import { place } from './verbs/place.ts';
import { read } from './verbs/read.ts';
import { repository } from './verbs/repository.ts';
import { reset } from './verbs/reset.ts';
import { scratch } from './verbs/scratch.ts';
import { unregister } from './verbs/unregister.ts';
import { write } from './verbs/write.ts';
import { warmUp } from './warm-up.ts';

// Its default opens the inspector; a listener takes that away even without --disable-sigusr1.
process.on('SIGUSR1', () => undefined);
// Its default ends the process; a write over RLIMIT_FSIZE is to fail with EFBIG instead.
process.on('SIGXFSZ', () => undefined);
process.umask(0o077);

/** EX_SOFTWARE (sysexits.h). */
const failedStatus = 70;

/** What each verb answers when the system refuses what it needs. */
const unable: Readonly<Record<FsVerb, FsRefusalCode>> = {
  list: 'file_failed',
  read: 'file_failed',
  write: 'write_failed',
  delete: 'file_failed',
  reset: 'reset_failed',
  repository: 'file_failed',
  scratch: 'file_failed',
  unregister: 'file_failed',
  place: 'file_failed',
  clear: 'file_failed',
};

/** The verbs that first remove what an earlier one left. Not those that go on with a git workflow. */
const clearsFirst: readonly FsVerb[] = ['write', 'delete', 'scratch', 'clear'];

const carryOut = (space: number, call: FsCall): FsResults[FsVerb] => {
  if (clearsFirst.includes(call.verb)) clearLeftovers(space);
  switch (call.verb) {
    case 'list':
      return withHome(space, (home) => list(home, call));
    case 'read':
      return withHome(space, (home) => read(home, call));
    case 'write':
      return withHome(space, (home) => write(space, home, call));
    case 'delete':
      return withHome(space, (home) => remove(space, home, call));
    case 'reset':
      return reset(space);
    case 'repository':
      return withHome(space, (home) => repository(home, call));
    case 'scratch':
      return withHome(space, (home) => scratch(space, home, call));
    case 'unregister':
      return withHome(space, (home) => unregister(space, home, call));
    case 'place':
      return withHome(space, (home) => place(space, home, call));
    case 'clear':
      return {};
  }
};

/** @throws a bug's error */
const answerTo = (space: number, call: FsCall & { readonly id: number }): FsReply => {
  const { id, verb } = call;
  try {
    return { kind: 'result', id, result: carryOut(space, call) };
  } catch (error) {
    if (error instanceof FsRefusal) return { kind: 'refused', id, code: error.code };
    if (errnoOf(error) === undefined) throw error;
    return { kind: 'refused', id, code: unable[verb] };
  }
};

/** The next message; undefined at the end of the input, which is the end of this process. */
const nextRequest = (): FsRequest | undefined => {
  const message = readMessage();
  return message === undefined ? undefined : parseRequest(message);
};

const serve = (space: number): void => {
  for (let request = nextRequest(); request !== undefined; request = nextRequest()) {
    if (request.kind !== 'call') throw new TypeError('a helper is one user’s only');
    writeMessage(answerTo(space, request));
  }
};

const main = (): void => {
  warmUp();
  writeMessage({ kind: 'ready' });
  const named = nextRequest();
  if (named === undefined) return;
  if (named.kind !== 'become') throw new TypeError('a call before there is a user');
  const space = holdSpace(named.space, named.uid);
  if (space === undefined) {
    writeMessage({ kind: 'refused', code: 'workspace_broken' });
    return;
  }
  drop(named.uid);
  writeMessage({ kind: 'dropped' });
  serve(space);
};

try {
  main();
  process.exit(0);
} catch {
  process.exit(failedStatus);
}
