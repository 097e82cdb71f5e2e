/**
 * The numbers of helper/native/wire.h for the TypeScript side. wire.h is the definition and explains each;
 * a test reads it and compares.
 */

/** Kinds of the messages on a connection to the spawner. */
export const messageKind = {
  run: 1,
  stop: 2,
  end: 3,
  helper: 4,
  user: 5,
  stdin: 6,
  beside: 7,
  resize: 8,
  signal: 9,
  stdout: 16,
  stderr: 17,
  failed: 18,
  incomplete: 19,
  exit: 20,
  ended: 21,
  stdinTaken: 22,
  started: 23,
} as const;

export const wire = {
  version: 2,
  headerBytes: 8,
  runFixedBytes: 72,
  exitBytes: 40,
  failedBytes: 8,
  planBytesMax: 4_194_304,
  relayBytesMax: 65_536,
  /** Bytes of standard input that may be on their way before the spawner's side says that some were taken. */
  stdinWindowBytes: 131_072,
  stdinTakenBytes: 4,
} as const;

/** A tool's standard streams. */
export const standardStreams = { empty: 0, pipes: 1, terminal: 2 } as const;

/** Why a run ended. */
export const endReason = { exited: 1, timeout: 2, stopped: 3, spawnerLost: 4 } as const;

/** Bits of the exit message's flags. */
export const exitFlag = { hasCode: 1, hasSignal: 2, stdoutCut: 4, stderrCut: 8 } as const;

/** Set-up steps by number - 1, as they are named in `details` of `exec_failed` and `limit_failed`. */
export const launchSteps = [
  'plan',
  'space',
  'pipes',
  'fork',
  'session',
  'oom_score',
  'limits',
  'groups',
  'gid',
  'uid',
  'verify',
  'no_new_privs',
  'home',
  'directory',
  'descriptors',
  'signals',
  'exec',
] as const;

/** One set-up step of a launch. */
export type LaunchStep = (typeof launchSteps)[number];
