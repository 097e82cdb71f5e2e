/**
 * Purpose: tells the answer of an earlier operation again.
 * Rights: none of its own.
 * Called by: dispatch.ts, for a request under a key whose operation is finished.
 * Fails: never with another answer than the one that was given: what is not kept any more is left out, and said to be.
 */
import type { Outcome } from '../../protocol/envelope.ts';
import { errorCodes } from '../../protocol/errors.ts';
import type { Outputs } from '../outputs.ts';
import type { Replay } from './mutations.ts';

/** Sends what is kept of the outputs, and returns what to reply. */
export const replay = async ({ operationId: replayOf, answer, record }: Replay, outputs: Outputs): Promise<Outcome> => {
  if (answer?.outcome.ok === true) {
    const { result, streams } = answer.outcome;
    for (const [stream, { cut }] of Object.entries(streams)) if (cut) outputs.markCut(stream);
    for (const [stream, bytes] of answer.streams) outputs.write(stream, bytes, () => undefined);
    await outputs.sent();
    return { ok: true, result, streams: outputs.ends(), replayOf };
  }
  if (answer?.outcome.ok === false) return { ...answer.outcome, replayOf };
  const { outcome, exit } = record;
  if (outcome === 'ok' || outcome === 'timeout') {
    const result = exit === null ? null : { timedOut: outcome === 'timeout', exitCode: exit };
    return { ok: 'expired', result, replayOf };
  }
  const error = errorCodes.find((code) => code === outcome);
  if (error === undefined) throw new Error('an outcome that cannot be told again');
  return { ok: false, error, replayOf };
};
