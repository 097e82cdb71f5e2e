/**
 * Purpose: writes what is asked of the spawner (helper/native/wire.h).
 * Rights: none of its own. A plan names the uid, the program and the space: all are the worker's own, none the gateway's.
 * Called by: runs.ts, run.ts and standard-input.ts; helpers/stand-by.ts.
 * Fails: a plan that is too large is none; its caller refuses.
 */
import { messageKind, standardStreams, wire } from '../../helper/contract.ts';

/** Everything the spawner needs to know to run one tool. Paths are the worker's own, never the gateway's. */
export interface LaunchPlan {
  readonly uid: number;
  /** Absolute; no search, no shell. */
  readonly program: string;
  /** Absolute path of the user's space. */
  readonly space: string;
  /** Relative to home; empty = home. Entered by the dropped child, beneath home only. */
  readonly directory: string;
  /** argv, the program's own name first. */
  readonly args: readonly string[];
  /** `KEY=VALUE`; all that the tool gets. */
  readonly environment: readonly string[];
  readonly timeLimitMs: number;
  /** Kept of each of stdout and stderr, bytes. */
  readonly outputBytesMax: number;
  /** Resource limits; 0 = not set. */
  readonly processesMax: number;
  readonly fileBytesMax: number;
  readonly addressBytesMax: number;
  /** Between SIGTERM and SIGKILL, ms; 0 = SIGKILL at once. */
  readonly termGraceMs: number;
  readonly streams: RunStreams;
}

/** Rows and columns of a terminal, 1..65535 each. */
export interface TerminalSize {
  readonly rows: number;
  readonly cols: number;
}

/** A tool's standard streams: empty input and two pipes, three pipes, or a terminal of that size. */
export type RunStreams = 'empty' | 'pipes' | TerminalSize;

/** Everything the spawner needs to know to start a helper: undropped, in `/`, for a user who is named later. */
export type HelperPlan = Pick<LaunchPlan, 'program' | 'args' | 'environment' | 'processesMax' | 'fileBytesMax'>;

const header = (kind: number, length: number): Buffer => {
  const bytes = Buffer.alloc(wire.headerBytes);
  bytes.writeUInt32BE(kind, 0);
  bytes.writeUInt32BE(length, 4);
  return bytes;
};

const sizeOf = ({ rows, cols }: TerminalSize): number => rows * 0x1_0000 + cols;

const encodePlan = (kind: number, plan: LaunchPlan): Buffer | undefined => {
  const texts = [plan.program, plan.space, plan.directory, ...plan.args, ...plan.environment];
  const strings = Buffer.from(`${texts.join('\0')}\0`);
  const length = wire.runFixedBytes + strings.length;
  if (length > wire.planBytesMax) return undefined;
  const fixed = Buffer.alloc(wire.runFixedBytes);
  fixed.writeUInt32BE(wire.version, 0);
  fixed.writeUInt32BE(plan.uid, 4);
  fixed.writeBigUInt64BE(BigInt(plan.timeLimitMs), 8);
  fixed.writeBigUInt64BE(BigInt(plan.outputBytesMax), 16);
  fixed.writeBigUInt64BE(BigInt(plan.processesMax), 24);
  fixed.writeBigUInt64BE(BigInt(plan.fileBytesMax), 32);
  fixed.writeBigUInt64BE(BigInt(plan.addressBytesMax), 40);
  fixed.writeUInt32BE(plan.termGraceMs, 48);
  fixed.writeUInt32BE(plan.args.length, 52);
  fixed.writeUInt32BE(plan.environment.length, 56);
  fixed.writeUInt32BE(strings.length, 60);
  const { streams } = plan;
  fixed.writeUInt32BE(typeof streams === 'string' ? standardStreams[streams] : standardStreams.terminal, 64);
  fixed.writeUInt32BE(typeof streams === 'string' ? 0 : sizeOf(streams), 68);
  return Buffer.concat([header(kind, length), fixed, strings]);
};

/**
 * The bytes of MSG_RUN (helper/native/wire.h).
 * @returns undefined if the plan is larger than the spawner takes; execve(2) would refuse it as well
 */
export const encodeRun = (plan: LaunchPlan): Buffer | undefined => encodePlan(messageKind.run, plan);

/** The bytes of MSG_BESIDE: as encodeRun, for one process beside a run of the same user. */
export const encodeBeside = (plan: LaunchPlan): Buffer | undefined => encodePlan(messageKind.beside, plan);

/** The bytes of MSG_HELPER. @throws RangeError if the plan, all of it the worker's own, is larger than the spawner takes */
export const encodeHelper = (plan: HelperPlan): Buffer => {
  const nobody = { uid: 0, space: '', directory: '', timeLimitMs: 0, addressBytesMax: 0, termGraceMs: 0 };
  const streams = 'empty';
  const bytes = encodePlan(messageKind.helper, {
    ...plan,
    ...nobody,
    streams,
    outputBytesMax: Number.MAX_SAFE_INTEGER,
  });
  if (bytes === undefined) throw new RangeError('the plan of a helper is too large');
  return bytes;
};

/** The bytes of MSG_STOP. */
export const encodeStop = (): Buffer => header(messageKind.stop, 0);

/** The bytes of MSG_STDIN: at most `wire.relayBytesMax` bytes of standard input. */
export const encodeInput = (data: Buffer): Buffer => Buffer.concat([header(messageKind.stdin, data.length), data]);

const encodeNumber = (kind: number, number: number): Buffer => {
  const body = Buffer.alloc(4);
  body.writeUInt32BE(number, 0);
  return Buffer.concat([header(kind, body.length), body]);
};

/** The bytes of MSG_END. */
export const encodeEnd = (uid: number): Buffer => encodeNumber(messageKind.end, uid);

/** The bytes of MSG_USER. */
export const encodeUser = (uid: number): Buffer => encodeNumber(messageKind.user, uid);

/** The bytes of MSG_RESIZE. */
export const encodeResize = (size: TerminalSize): Buffer => encodeNumber(messageKind.resize, sizeOf(size));

/** The bytes of MSG_SIGNAL. */
export const encodeSignal = (signal: number): Buffer => encodeNumber(messageKind.signal, signal);
