/**
 * Purpose: both streams of a process from given offsets on, for the events that the gateway sends.
 * Rights: none of its own.
 * Called by: operations/process.ts.
 * Fails: `bad_request` for an offset that nothing has been written at.
 */
import { isUtf8 } from 'node:buffer';
import { Refusal } from '../../protocol/errors.ts';
import { processEventBytesMax } from '../../protocol/limits.ts';
import type { Result } from '../../protocol/operations/index.ts';
import type { Process, StreamName } from './process.ts';
import { type Wait, whole } from './read.ts';

type Turn = Result<'process.stream'>;
type From = Readonly<Record<StreamName, number | undefined>>;

/** @throws Refusal `bad_request` */
const pieceOf = (process: Process, stream: StreamName, given: number | undefined): Turn['pieces'][number] => {
  const window = process.windows[stream];
  const asked = given ?? window.retainedFrom;
  if (asked > window.end) throw new Refusal('bad_request');
  const from = Math.max(asked, window.retainedFrom);
  const bytes = whole(window, from, window.read(from, processEventBytesMax));
  // Nothing is told as another byte than it is: what is no text goes as it is.
  const encoding = isUtf8(bytes) ? 'utf8' : 'base64';
  return { stream, asked, from, next: from + bytes.length, data: bytes.toString(encoding), encoding };
};

const turnOf = (process: Process, { stdout, stderr }: From): Turn => {
  const pieces = [pieceOf(process, 'stdout', stdout), pieceOf(process, 'stderr', stderr)];
  const all = pieces.every(({ stream, next }) => next === process.windows[stream].end);
  return { pieces, termination: (all ? process.termination : undefined) ?? null };
};

const isEmpty = ({ pieces, termination }: Turn): boolean =>
  termination === null && pieces.every(({ asked, next }) => next === asked);

/** What there is, or as soon as there is something, or after so many ms nothing. @throws Refusal `bad_request` */
export const followWaiting = async (process: Process, from: From, { waitMs, signal, room }: Wait): Promise<Turn> => {
  const until = performance.now() + waitMs;
  for (;;) {
    await room();
    const turn = turnOf(process, from);
    if (!isEmpty(turn) || !(await process.change(until - performance.now(), signal))) return turn;
  }
};
