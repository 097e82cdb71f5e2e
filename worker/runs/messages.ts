/**
 * Purpose: reads what the spawner's side says (helper/native/wire.h).
 * Rights: none of its own. The spawner's side is root's too, but relays what tools write.
 * Called by: run.ts.
 * Fails: closed. Anything that wire.h does not know is a SpawnerViolation, and the run counts as lost.
 */
import { constants } from 'node:os';
import { endReason, exitFlag, type LaunchStep, launchSteps, messageKind, wire } from '../../helper/contract.ts';

/** How a run ended; all of it is gone unless it came as `incomplete`. */
export interface RunExit {
  readonly reason: keyof typeof endReason;
  /** The leader's own; undefined when it did not exit by itself or was not seen. Never made up. */
  readonly exitCode: number | undefined;
  /** Name of the signal that ended the leader. */
  readonly signal: string | undefined;
  readonly stdoutCut: boolean;
  readonly stderrCut: boolean;
  readonly maxRssBytes: number;
  readonly cpuMicros: number;
  readonly durationMicros: number;
}

/** One message of the spawner's side. */
export type SpawnerMessage =
  /** Lies in the chunk that was pushed: good until the next one. A long message comes in pieces. */
  | { readonly kind: 'output'; readonly stream: 'stdout' | 'stderr'; readonly data: Buffer<ArrayBuffer> }
  /** Nobody can write to it any more. */
  | { readonly kind: 'outputEnd'; readonly stream: 'stdout' | 'stderr' }
  /** The tool was executed. */
  | { readonly kind: 'started' }
  /** The tool has not run. */
  | { readonly kind: 'failed'; readonly step: LaunchStep; readonly errno: string }
  /** Some process of the run resists; `exit` may still follow. */
  | { readonly kind: 'incomplete'; readonly exit: RunExit }
  | { readonly kind: 'exit'; readonly exit: RunExit }
  | { readonly kind: 'ended' }
  /** So many more bytes of standard input were taken. */
  | { readonly kind: 'stdinTaken'; readonly bytes: number };

/** The spawner's side said something that wire.h does not know: its word is worth nothing any more. */
export class SpawnerViolation extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'SpawnerViolation';
  }
}

const nameIn = (table: Readonly<Record<string, number>>, value: number, prefix: string): string =>
  Object.entries(table).find(([, number]) => number === value)?.[0] ?? `${prefix}${value}`;

const signalName = (number: number): string => nameIn(constants.signals, number, 'SIG');
const errnoName = (number: number): string => nameIn(constants.errno, number, 'E');

const readExit = (body: Buffer): RunExit => {
  const flags = body.readUInt32BE(4);
  const has = (flag: number): boolean => (flags & flag) !== 0;
  const reason = (Object.keys(endReason) as (keyof typeof endReason)[]).find(
    (name) => endReason[name] === body.readUInt32BE(0),
  );
  if (reason === undefined) throw new SpawnerViolation('unknown end reason');
  return {
    reason,
    exitCode: has(exitFlag.hasCode) ? body.readUInt32BE(8) : undefined,
    signal: has(exitFlag.hasSignal) ? signalName(body.readUInt32BE(12)) : undefined,
    stdoutCut: has(exitFlag.stdoutCut),
    stderrCut: has(exitFlag.stderrCut),
    maxRssBytes: Number(body.readBigUInt64BE(16)),
    cpuMicros: Number(body.readBigUInt64BE(24)),
    durationMicros: Number(body.readBigUInt64BE(32)),
  };
};

const streamOf = (kind: number): 'stdout' | 'stderr' => (kind === messageKind.stdout ? 'stdout' : 'stderr');

const sizeOf = (body: Buffer, bytes: number): Buffer => {
  if (body.length !== bytes) throw new SpawnerViolation('a message of the wrong size');
  return body;
};

/** Of output only its end: what has a body is not gathered. */
const readMessage = (kind: number, body: Buffer): SpawnerMessage => {
  switch (kind) {
    case messageKind.stdout:
    case messageKind.stderr:
      return { kind: 'outputEnd', stream: streamOf(kind) };
    case messageKind.started:
      sizeOf(body, 0);
      return { kind: 'started' };
    case messageKind.failed: {
      const step = launchSteps[sizeOf(body, wire.failedBytes).readUInt32BE(0) - 1];
      if (step === undefined) throw new SpawnerViolation('unknown step');
      return { kind: 'failed', step, errno: errnoName(body.readUInt32BE(4)) };
    }
    case messageKind.incomplete:
      return { kind: 'incomplete', exit: readExit(sizeOf(body, wire.exitBytes)) };
    case messageKind.exit:
      return { kind: 'exit', exit: readExit(sizeOf(body, wire.exitBytes)) };
    case messageKind.ended:
      sizeOf(body, 0);
      return { kind: 'ended' };
    case messageKind.stdinTaken:
      return { kind: 'stdinTaken', bytes: sizeOf(body, wire.stdinTakenBytes).readUInt32BE(0) };
    default:
      throw new SpawnerViolation('unknown message');
  }
};

/** Cuts what comes from the spawner's side into messages. Output is not held; of all else at most one unfinished message. */
export class SpawnerMessages {
  /** The header of the message that is being read, and its body unless that is output. */
  readonly #held = Buffer.alloc(wire.headerBytes + wire.exitBytes);
  #heldBytes = 0;
  #output: { readonly stream: 'stdout' | 'stderr'; left: number } | undefined;

  /** @throws SpawnerViolation */
  *push(chunk: Buffer<ArrayBuffer>): Generator<SpawnerMessage, void, undefined> {
    let rest = chunk;
    while (rest.length > 0) {
      if (this.#output !== undefined) {
        const { stream, left } = this.#output;
        const data = rest.subarray(0, left);
        this.#output = data.length === left ? undefined : { stream, left: left - data.length };
        rest = rest.subarray(data.length);
        yield { kind: 'output', stream, data };
        continue;
      }
      rest = this.#hold(rest, wire.headerBytes);
      if (this.#heldBytes < wire.headerBytes) return;
      const [kind, length] = [this.#held.readUInt32BE(0), this.#held.readUInt32BE(4)];
      if (length > wire.relayBytesMax) throw new SpawnerViolation('a message over the limit');
      if (length > 0 && (kind === messageKind.stdout || kind === messageKind.stderr)) {
        this.#heldBytes = 0;
        this.#output = { stream: streamOf(kind), left: length };
        continue;
      }
      if (length > wire.exitBytes) throw new SpawnerViolation('a message of the wrong size');
      const end = wire.headerBytes + length;
      rest = this.#hold(rest, end);
      if (this.#heldBytes < end) return;
      this.#heldBytes = 0;
      yield readMessage(kind, this.#held.subarray(wire.headerBytes, end));
    }
  }

  /** Takes what is missing up to so many bytes; returns what follows. */
  #hold(bytes: Buffer<ArrayBuffer>, upTo: number): Buffer<ArrayBuffer> {
    const missing = upTo - this.#heldBytes;
    if (missing <= 0) return bytes;
    this.#heldBytes += bytes.copy(this.#held, this.#heldBytes, 0, missing);
    return bytes.subarray(missing);
  }
}
