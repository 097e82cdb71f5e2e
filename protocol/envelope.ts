import { z } from 'zod';
import { errorCodes } from './errors.ts';
import { eventBytesMax, eventCreditBytes, requestsInFlightMax } from './limits.ts';
import { operationNames } from './operations/index.ts';
import { idempotencyKey, operationId } from './values.ts';

/** Changes whenever a message changes its meaning; both sides must say the same. */
export const protocolVersion = 1;

/** Ids count up from 1 on each link, so a reused one is seen at once. */
const requestId = z.int().min(1).max(0xffff_ffff);
const streamName = z.string().min(1).max(32);

const hello = z.strictObject({
  kind: z.literal('hello'),
  version: z.int(),
  /** Made anew by each process at its start: tells a restarted peer from the same one. */
  instance: z.uuid(),
  /** What the sender takes: requests at once (the worker's counts), event bytes ahead of credit (the gateway's counts). */
  limits: z.strictObject({
    requestsInFlight: z.int().min(1).max(requestsInFlightMax),
    eventCredit: z.int().min(1).max(eventCreditBytes),
  }),
});

const request = z.strictObject({
  kind: z.literal('request'),
  id: requestId,
  operation: z.enum(operationNames),
  /** Of mutations only: minted by the gateway before the first byte goes out. */
  operationId: operationId.optional(),
  /** The caller's own name for it; of mutations only. */
  idempotencyKey: idempotencyKey.optional(),
  params: z.unknown(),
});

const streamEnd = z.strictObject({
  /** All that was sent of it, so that a lost event is noticed. */
  bytes: z.int().min(0),
  /** The tool wrote more than is kept. */
  cut: z.boolean(),
});

/** What is left of a tool's result whose answer is not kept any more. */
const expiredResult = z.strictObject({
  timedOut: z.boolean(),
  exitCode: z.int().min(-1).max(255),
});

const reply = z.strictObject({
  kind: z.literal('reply'),
  id: requestId,
  /** `replayOf`: the operation that this answer was given for, when it is given again under its Idempotency-Key. */
  outcome: z.discriminatedUnion('ok', [
    z.strictObject({
      ok: z.literal(true),
      result: z.unknown(),
      streams: z.record(streamName, streamEnd),
      replayOf: operationId.optional(),
    }),
    z.strictObject({
      ok: z.literal(false),
      error: z.enum(errorCodes),
      details: z.record(z.string(), z.unknown()).optional(),
      replayOf: operationId.optional(),
    }),
    /** A replay of an operation that had a result, which is not kept any more; null where no tool has left with a code. */
    z.strictObject({ ok: z.literal('expired'), result: expiredResult.nullable(), replayOf: operationId }),
  ]),
});

const event = z.strictObject({
  kind: z.literal('event'),
  id: requestId,
  stream: streamName,
  data: z.instanceof(Uint8Array).refine((data) => data.length >= 1 && data.length <= eventBytesMax),
});

const credit = z.strictObject({
  kind: z.literal('credit'),
  id: requestId,
  bytes: z.int().min(1).max(eventCreditBytes),
});

const cancel = z.strictObject({ kind: z.literal('cancel'), id: requestId });

/** Everything that can be said on the link. */
export const message = z.discriminatedUnion('kind', [
  hello,
  request,
  reply,
  event,
  credit,
  cancel,
  z.strictObject({ kind: z.literal('ping') }),
  z.strictObject({ kind: z.literal('pong') }),
]);

/** One message of the link. */
export type Message = z.output<typeof message>;
/** One message of a kind. */
export type MessageOf<Kind extends Message['kind']> = Extract<Message, { kind: Kind }>;
/** How an operation came out. */
export type Outcome = MessageOf<'reply'>['outcome'];
/** What is left of a result that is not kept any more. */
export type ExpiredResult = z.output<typeof expiredResult>;
/** What is told of a stream when all of it was sent. */
export type StreamEnd = z.output<typeof streamEnd>;
