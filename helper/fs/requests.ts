/**
 * Purpose: strict parsing of what the worker says. By hand: the helper has no dependencies.
 * Rights: none.
 * Called by: main.ts.
 * Fails: throws TypeError for every message that is not exactly one of the contract; the helper then ends.
 */
import type { FsRequest } from '../contract/fs.ts';

/** Most entries of a list, and most bytes of a content, that a frame holds whatever they are; see list.ts and read.ts. */
const entriesLimit = 2_000;
const contentBytesLimit = 512 * 1024;
/** The users' range: n + 20000 for n up to 1,000,000. Never root, never the service. */
const uidFirst = 20_000;
const uidLast = 1_020_000;

/** Most refs of one call, and the longest name of one, bytes (PATH_MAX). */
const refsLimit = 8;
const refBytesLimit = 4_096;

type Fields = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Whether these are exactly the fields, each as it must be. */
const fits = (message: Fields, shape: Readonly<Record<string, (value: unknown) => boolean>>): boolean =>
  Object.keys(message).length === Object.keys(shape).length &&
  Object.entries(shape).every(([name, test]) => Object.hasOwn(message, name) && test(message[name]));

const whole = (min: number, max: number) => (value: unknown) =>
  typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max;
const oneOf =
  (...wanted: readonly string[]) =>
  (value: unknown) =>
    wanted.some((one) => value === one);
const text = (value: unknown): boolean => typeof value === 'string' && value.isWellFormed();
const space = (value: unknown): boolean => typeof value === 'string' && /^\/[^\0]*$/.test(value);
const path = text;
/** A name of the server's making: one folder, that no path leads out of, and nothing in git takes for an option. */
const isSafeName = (name: string): boolean => /^[A-Za-z0-9_][A-Za-z0-9._-]{0,254}$/.test(name) && !name.includes('..');
const project = (value: unknown): boolean => typeof value === 'string' && isSafeName(value);
const namesIn = (value: unknown, first: string, count: number): boolean => {
  const [head, ...names] = typeof value === 'string' ? value.split('/') : [];
  return head === first && names.length === count && names.every(isSafeName);
};
const worktree = (value: unknown): boolean => namesIn(value, 'work', 2);
const place = (value: unknown): boolean => worktree(value) || namesIn(value, 'repos', 1);
/** As git-check-ref-format(1) has it, as far as a name could lead elsewhere as a path. */
const ref = (value: unknown): boolean =>
  typeof value === 'string' &&
  value.isWellFormed() &&
  Buffer.byteLength(value) <= refBytesLimit &&
  /^refs(\/[^\0-\x20\x7f/.][^\0-\x20\x7f/]*)+$/.test(value) &&
  !value.includes('..');
const refs = (value: unknown): boolean => Array.isArray(value) && value.length <= refsLimit && value.every(ref);
const orNull = (test: (value: unknown) => boolean) => (value: unknown) => value === null || test(value);
const cleanRepository = (value: unknown): boolean =>
  isObject(value) && fits(value, { format: oneOf('sha1', 'sha256'), borrows: orNull(project) });

/** The fields of each message beside those that tell it apart, and what each must be. */
const become = { uid: whole(uidFirst, uidLast), space };
const calls: Readonly<Record<string, Readonly<Record<string, (value: unknown) => boolean>>>> = {
  list: { path, entriesMax: whole(1, entriesLimit) },
  read: { path, bytesMax: whole(0, contentBytesLimit), probeBytes: whole(0, contentBytesLimit) },
  write: { path, content: text },
  delete: { path },
  reset: {},
  repository: { project, worktree: orNull(worktree) },
  scratch: { clean: orNull(cleanRepository) },
  unregister: { project, worktree, refs },
  place: { path: place, project: orNull(project) },
  clear: {},
};

/**
 * A message of the worker's.
 * @throws TypeError
 */
export const parseRequest = (message: unknown): FsRequest => {
  if (isObject(message)) {
    if (fits(message, { kind: oneOf('become'), ...become })) return message as unknown as FsRequest;
    const verb = String(message['verb']);
    const fields = Object.hasOwn(calls, verb) ? calls[verb] : undefined;
    const shape = { kind: oneOf('call'), id: whole(1, Number.MAX_SAFE_INTEGER), verb: oneOf(verb), ...fields };
    if (fields !== undefined && fits(message, shape)) return message as unknown as FsRequest;
  }
  throw new TypeError('not a message of the contract');
};
