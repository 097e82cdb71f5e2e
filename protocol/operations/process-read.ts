import { z } from 'zod';
import { processReadBytesMax, processWaitMsMax } from '../limits.ts';
import type { Operation } from '../operation.ts';
import { encoding, offset, processId } from './process-fields.ts';

/**
 * Reads what a process has written, by absolute offsets, or waits for it.
 * Source: specification, Agent contract, "Processes".
 */
export const processRead = {
  route: '/v1/process/read',
  effect: 'read',
  params: z.strictObject({
    processId,
    /** A terminal has only `stdout`. */
    stream: z.enum(['stdout', 'stderr']).optional(),
    /** The oldest byte that is kept, unless given. */
    from: offset.optional(),
    /** At least one character. */
    maxBytes: z.int().min(4).max(processReadBytesMax).optional(),
    waitMs: z.int().min(0).max(processWaitMsMax).optional(),
    encoding: encoding.optional(),
  }),
  result: z.strictObject({
    data: z.string(),
    /** Offset of the first byte of `data`. */
    from: offset,
    /** Where to read on. */
    next: offset,
    retainedFrom: offset,
    /** Bytes from the asked offset on are not kept any more. */
    outputLost: z.boolean(),
    /** No more will come on this stream; says nothing about success, nor that the process has ended. */
    eof: z.boolean(),
  }),
  streams: [],
  asRoot: 'copies out of the window',
  asUser: 'nothing',
  audit: 'process.read',
  poll: true,
  secrets: [],
  errors: ['bad_request', 'process_not_found'],
  timeLimitMs: () => processWaitMsMax,
} as const satisfies Operation;
