import { z } from 'zod';
import { processWaitMsMax } from '../limits.ts';
import type { Operation } from '../operation.ts';
import { encoding, offset, processId, termination } from './process-fields.ts';

/**
 * What there is of both streams of a process, or as soon as there is something: one turn of the events that the gateway
 * sends. How it ended comes when all of its output was given.
 * Source: specification, Agent contract, "Processes".
 */
export const processStream = {
  route: '/v1/process/stream',
  effect: 'read',
  events: true,
  params: z.strictObject({
    processId,
    /** Offsets to go on from; the oldest byte that is kept, unless given. */
    stdout: offset.optional(),
    stderr: offset.optional(),
    waitMs: z.int().min(0).max(processWaitMsMax),
  }),
  result: z.strictObject({
    pieces: z
      .array(
        z.strictObject({
          stream: z.enum(['stdout', 'stderr']),
          /** What was asked for; what lies between it and `from` is not kept any more. */
          asked: offset,
          from: offset,
          next: offset,
          data: z.string(),
          encoding,
        }),
      )
      .length(2),
    termination: termination.nullable(),
  }),
  streams: [],
  asRoot: 'copies out of the windows',
  asUser: 'nothing',
  audit: 'process.stream',
  poll: true,
  secrets: [],
  errors: ['bad_request', 'process_not_found'],
  timeLimitMs: () => processWaitMsMax,
} as const satisfies Operation;
