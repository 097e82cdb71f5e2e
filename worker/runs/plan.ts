/**
 * Purpose: writes what is asked of the spawner (helper/native/wire.h).
 * Rights: none of its own. A plan names the uid, the program and the space: all are the worker's own, none the gateway's.
 * Called by: runs.ts, run.ts and standard-input.ts; helpers/stand-by.ts.
 * Fails: a plan that is too large is none; its caller refuses.
 */
import { messageKind, wire } from '../../helper/contract.ts';

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
}

/** Everything the spawner needs to know to start a helper: undropped, in `/`, for a user who is named later. */
export type HelperPlan = Pick<LaunchPlan, 'program' | 'args' | 'environment' | 'processesMax' | 'fileBytesMax'>;

const header = (kind: number, length: number): Buffer => {
  const bytes = Buffer.alloc(wire.headerBytes);
  bytes.writeUInt32BE(kind, 0);
  bytes.writeUInt32BE(length, 4);
  return bytes;
};

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
  const bytes = encodePlan(messageKind.helper, { ...plan, ...nobody, outputBytesMax: Number.MAX_SAFE_INTEGER });
  if (bytes === undefined) throw new RangeError('the plan of a helper is too large');
  return bytes;
};

/** The bytes of MSG_STOP. */
export const encodeStop = (): Buffer => header(messageKind.stop, 0);

/** The bytes of MSG_STDIN: at most `wire.relayBytesMax` bytes of standard input. */
export const encodeInput = (data: Buffer): Buffer => Buffer.concat([header(messageKind.stdin, data.length), data]);

const encodeUid = (kind: number, uid: number): Buffer => {
  const body = Buffer.alloc(4);
  body.writeUInt32BE(uid, 0);
  return Buffer.concat([header(kind, body.length), body]);
};

/** The bytes of MSG_END. */
export const encodeEnd = (uid: number): Buffer => encodeUid(messageKind.end, uid);

/** The bytes of MSG_USER. */
export const encodeUser = (uid: number): Buffer => encodeUid(messageKind.user, uid);
