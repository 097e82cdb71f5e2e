/**
 * Purpose: reads a process's output by offsets, waits for more, and cuts it where the encoding allows.
 * Rights: none of its own.
 * Called by: operations/process.ts.
 * Fails: `bad_request` for an offset that nothing has been written at.
 */
import { Refusal } from '../../protocol/errors.ts';
import type { Result } from '../../protocol/operations/index.ts';
import type { Encoding } from '../../protocol/operations/process-fields.ts';
import { unfinishedBytes } from './characters.ts';
import type { OutputWindow } from './output-window.ts';
import type { Process, StreamName } from './process.ts';

/** What is asked for. */
export interface ReadRequest {
  readonly stream: StreamName;
  /** Absolute; undefined = the oldest byte that is kept. */
  readonly from: number | undefined;
  readonly bytesMax: number;
  readonly encoding: Encoding;
}

type ReadAnswer = Result<'process.read'>;

/** For how long something new is waited for, and with what. */
export interface Wait {
  readonly waitMs: number;
  /** Aborted when nobody waits any more. */
  readonly signal: AbortSignal;
  /** Resolves when there is room for a large answer. */
  readonly room: () => Promise<void>;
}

/** All of it, but not the beginning of a character whose rest is still to come. */
export const whole = (window: OutputWindow, from: number, bytes: Buffer): Buffer => {
  const isLast = window.closed && from + bytes.length === window.end;
  return isLast ? bytes : bytes.subarray(0, bytes.length - unfinishedBytes(bytes));
};

/** What there is now. @throws Refusal `bad_request` */
export const readNow = (process: Process, { stream, from: asked, bytesMax, encoding }: ReadRequest): ReadAnswer => {
  const window = process.windows[stream];
  const { retainedFrom, end } = window;
  if (asked !== undefined && asked > end) throw new Refusal('bad_request');
  const from = Math.max(asked ?? retainedFrom, retainedFrom);
  const read = window.read(from, bytesMax);
  const bytes = encoding === 'utf8' ? whole(window, from, read) : read;
  const next = from + bytes.length;
  return {
    data: bytes.toString(encoding),
    from,
    next,
    retainedFrom,
    outputLost: asked !== undefined && asked < retainedFrom,
    eof: window.closed && next === end,
  };
};

/**
 * What there is, or as soon as there is something, or after so many ms whatever there is then.
 * @param room waited for before anything is read: what is read may be large
 * @throws Refusal `bad_request`
 */
export const readWaiting = async (
  process: Process,
  request: ReadRequest,
  { waitMs, signal, room }: Wait,
): Promise<ReadAnswer> => {
  const until = performance.now() + waitMs;
  // Waits from where it began, so that what passes meanwhile is told as lost.
  const from = request.from ?? process.windows[request.stream].retainedFrom;
  for (;;) {
    await room();
    const answer = readNow(process, { ...request, from });
    if (answer.data !== '' || answer.eof || !(await process.change(until - performance.now(), signal))) return answer;
  }
};
