import type { z } from 'zod';
import { Refusal } from '../protocol/errors.ts';
import type { processStream } from '../protocol/operations/process-stream.ts';

/** One turn of a process's output, as the worker tells it. */
export type Turn = z.output<(typeof processStream)['result']>;

/** How far each stream was sent; undefined = from the oldest byte that is kept. */
export interface Position {
  readonly stdout?: number;
  readonly stderr?: number;
}

/**
 * Where to go on: `<stdout>.<stderr>`, as the ids of events have it.
 * @throws Refusal `bad_request`
 */
export const positionOf = (text: string | undefined): Position => {
  if (text === undefined) return {};
  const [, stdout, stderr] = /^(\d{1,15})\.(\d{1,15})$/.exec(text) ?? [];
  if (stdout === undefined || stderr === undefined)
    throw new Refusal('bad_request', undefined, 'The offsets must be <stdout>.<stderr>.');
  return { stdout: Number(stdout), stderr: Number(stderr) };
};

/** JSON has no line break of its own, so one `data:` line is enough. */
const event = (name: string, id: string, data: object): string =>
  `event: ${name}\nid: ${id}\ndata: ${JSON.stringify(data)}\n\n`;

/** The events of one turn, and where the next goes on. An id tells of all that was sent up to its event. */
export const eventsOf = ({ pieces, termination }: Turn): { readonly text: string; readonly position: Position } => {
  const at = { stdout: 0, stderr: 0 };
  for (const { stream, asked } of pieces) at[stream] = asked;
  const id = (): string => `${at.stdout}.${at.stderr}`;
  let text = '';
  for (const { stream, asked, from, next, data, encoding } of pieces) {
    at[stream] = from;
    if (from > asked) text += event('lost', id(), { stream, from: asked, to: from });
    at[stream] = next;
    if (next > from) text += event('output', id(), { stream, from, data, encoding });
  }
  if (termination !== null) text += event('exit', id(), { termination });
  return { text, position: at };
};
