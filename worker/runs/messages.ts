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
  | { readonly kind: 'output'; readonly stream: 'stdout' | 'stderr'; readonly data: Buffer<ArrayBuffer> }
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

const sizeOf = (body: Buffer, bytes: number): Buffer => {
  if (body.length !== bytes) throw new SpawnerViolation('a message of the wrong size');
  return body;
};

const readMessage = (kind: number, body: Buffer<ArrayBuffer>): SpawnerMessage => {
  switch (kind) {
    case messageKind.stdout:
    case messageKind.stderr:
      if (body.length === 0) throw new SpawnerViolation('output without bytes');
      return { kind: 'output', stream: kind === messageKind.stdout ? 'stdout' : 'stderr', data: body };
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

/** Cuts what comes from the spawner's side into messages; holds at most one unfinished one. */
export class SpawnerMessages {
  #rest: Buffer<ArrayBuffer> = Buffer.alloc(0);

  /** @throws SpawnerViolation */
  *push(chunk: Buffer<ArrayBuffer>): Generator<SpawnerMessage, void, undefined> {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    while (bytes.length >= wire.headerBytes) {
      const length = bytes.readUInt32BE(4);
      if (length > wire.relayBytesMax) throw new SpawnerViolation('a message over the limit');
      const end = wire.headerBytes + length;
      if (bytes.length < end) break;
      yield readMessage(bytes.readUInt32BE(0), bytes.subarray(wire.headerBytes, end));
      bytes = bytes.subarray(end);
    }
    this.#rest = bytes;
  }
}
