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

type Fields = Readonly<Record<string, unknown>>;

const whole = (min: number, max: number) => (value: unknown) =>
  typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max;
const text = (value: unknown): boolean => typeof value === 'string' && value.isWellFormed();
const space = (value: unknown): boolean => typeof value === 'string' && /^\/[^\0]*$/.test(value);
const path = text;

/** The fields of each message beside those that tell it apart, and what each must be. */
const become = { uid: whole(uidFirst, uidLast), space };
const calls: Readonly<Record<string, Readonly<Record<string, (value: unknown) => boolean>>>> = {
  list: { path, entriesMax: whole(1, entriesLimit) },
  read: { path, bytesMax: whole(0, contentBytesLimit), probeBytes: whole(0, contentBytesLimit) },
  write: { path, content: text },
  delete: { path },
  reset: {},
};

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Whether these are exactly the fields, each as it must be. */
const fits = (message: Fields, shape: Readonly<Record<string, (value: unknown) => boolean>>): boolean =>
  Object.keys(message).length === Object.keys(shape).length &&
  Object.entries(shape).every(([name, test]) => Object.hasOwn(message, name) && test(message[name]));

/**
 * A message of the worker's.
 * @throws TypeError
 */
export const parseRequest = (message: unknown): FsRequest => {
  if (isObject(message)) {
    const is = (wanted: string) => (value: unknown) => value === wanted;
    if (fits(message, { kind: is('become'), ...become })) return message as unknown as FsRequest;
    const verb = String(message['verb']);
    const fields = Object.hasOwn(calls, verb) ? calls[verb] : undefined;
    const shape = { kind: is('call'), id: whole(1, Number.MAX_SAFE_INTEGER), verb: is(verb), ...fields };
    if (fields !== undefined && fits(message, shape)) return message as unknown as FsRequest;
  }
  throw new TypeError('not a message of the contract');
};
