import { z } from 'zod';
import { processWriteBytesMax } from '../limits.ts';
import type { Operation } from '../operation.ts';
import { idempotencyKey, text } from '../values.ts';
import { encoding, processId } from './process-fields.ts';

/** Longest base64 of so many bytes, padding included. */
const base64Length = (bytes: number): number => 4 * Math.ceil(bytes / 3);

const canonicalBase64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/**
 * Writes to a process's standard input: all of it, or nothing.
 * Source: specification, Agent contract, "Processes".
 */
export const processWrite = {
  route: '/v1/process/write',
  effect: 'mutate',
  params: z
    .strictObject({
      processId,
      data: text.max(base64Length(processWriteBytesMax)),
      encoding: encoding.optional(),
      /** Closes a pipe; on a terminal the end-of-file character follows the data. */
      eof: z.boolean().optional(),
      /** What was written under it once is not written again. */
      writeId: idempotencyKey.optional(),
    })
    .refine(({ data, encoding: given }) => given !== 'base64' || canonicalBase64.test(data), {
      error: 'must be base64',
      path: ['data'],
    })
    .refine(({ data, encoding: given }) => Buffer.byteLength(data, given ?? 'utf8') <= processWriteBytesMax, {
      error: `must be at most ${processWriteBytesMax} bytes`,
      path: ['data'],
    }),
  result: z.strictObject({ written: z.int().min(0) }),
  streams: [],
  asRoot: 'hands it to the supervisor',
  asUser: 'nothing',
  audit: 'process.write',
  poll: true,
  secrets: ['data', 'writeId'],
  errors: ['process_not_found', 'process_not_running', 'process_backpressure', 'stdin_closed', 'uncertain'],
  timeLimitMs: () => 0,
} as const satisfies Operation;
