/** The spawner's side of the launch format, written by hand from helper/native/wire.h. */

const u32 = (...values: readonly number[]): Buffer => {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [index, value] of values.entries()) bytes.writeUInt32BE(value, 4 * index);
  return bytes;
};

const u64 = (...values: readonly bigint[]): Buffer => {
  const bytes = Buffer.alloc(8 * values.length);
  for (const [index, value] of values.entries()) bytes.writeBigUInt64BE(value, 8 * index);
  return bytes;
};

/** One message: kind, length of the body, body. */
export const said = (kind: number, body: Uint8Array = Buffer.alloc(0)): Buffer<ArrayBuffer> =>
  Buffer.concat([u32(kind, body.length), body]);

export const saidOutput = (stream: 'stdout' | 'stderr', data: string): Buffer<ArrayBuffer> =>
  said(stream === 'stdout' ? 16 : 17, Buffer.from(data));

export const saidFailed = (step: number, errno: number): Buffer<ArrayBuffer> => said(18, u32(step, errno));

export interface SaidExit {
  readonly reason?: number;
  readonly flags?: number;
  readonly code?: number;
  readonly signal?: number;
  readonly resident?: bigint;
  readonly cpu?: bigint;
  readonly duration?: bigint;
}

/** Without arguments: an exit with code 0 after 2,500 µs. */
export const exitBody = ({
  reason = 1,
  flags = 1,
  code = 0,
  signal = 0,
  resident = 1024n,
  cpu = 700n,
  duration = 2500n,
}: SaidExit = {}): Buffer => Buffer.concat([u32(reason, flags, code, signal), u64(resident, cpu, duration)]);

export const saidIncomplete = (exit?: SaidExit): Buffer<ArrayBuffer> => said(19, exitBody(exit));
export const saidExit = (exit?: SaidExit): Buffer<ArrayBuffer> => said(20, exitBody(exit));
export const saidEnded = (): Buffer<ArrayBuffer> => said(21);

/** What a launch plan says, read back. */
export interface ReadPlan {
  readonly version: number;
  readonly uid: number;
  readonly timeLimitMs: bigint;
  readonly outputBytesMax: bigint;
  readonly processesMax: bigint;
  readonly fileBytesMax: bigint;
  readonly addressBytesMax: bigint;
  readonly termGraceMs: number;
  readonly streams: 'empty' | 'pipes' | { readonly rows: number; readonly cols: number };
  readonly program: string;
  readonly space: string;
  readonly directory: string;
  readonly args: readonly string[];
  readonly environment: readonly string[];
}

const readStreams = (kind: number, rows: number, cols: number): ReadPlan['streams'] => {
  if (kind === 2) return { rows, cols };
  if (kind > 2 || rows !== 0 || cols !== 0) throw new Error('streams that there are not');
  return kind === 0 ? 'empty' : 'pipes';
};

/** Reads MSG_RUN, or MSG_BESIDE (7), as the spawner does: every length is checked, and nothing may be left over. */
export const readRun = (bytes: Buffer, kind: 1 | 7 = 1): ReadPlan => {
  if (bytes.readUInt32BE(0) !== kind) throw new Error('another kind of message');
  if (bytes.readUInt32BE(4) !== bytes.length - 8) throw new Error('the length is not that of the body');
  const body = bytes.subarray(8);
  if (body.readUInt32BE(60) !== body.length - 72) throw new Error('the length of the strings is wrong');
  const strings: string[] = [];
  for (let at = 72; at < body.length; ) {
    const end = body.indexOf(0, at);
    if (end < 0) throw new Error('a string has no end');
    strings.push(body.subarray(at, end).toString());
    at = end + 1;
  }
  const count = body.readUInt32BE(52);
  const environmentCount = body.readUInt32BE(56);
  if (strings.length !== 3 + count + environmentCount) throw new Error('the counts are not those of the strings');
  const [program = '', space = '', directory = ''] = strings;
  return {
    version: body.readUInt32BE(0),
    uid: body.readUInt32BE(4),
    timeLimitMs: body.readBigUInt64BE(8),
    outputBytesMax: body.readBigUInt64BE(16),
    processesMax: body.readBigUInt64BE(24),
    fileBytesMax: body.readBigUInt64BE(32),
    addressBytesMax: body.readBigUInt64BE(40),
    termGraceMs: body.readUInt32BE(48),
    streams: readStreams(body.readUInt32BE(64), body.readUInt16BE(68), body.readUInt16BE(70)),
    program,
    space,
    directory,
    args: strings.slice(3, 3 + count),
    environment: strings.slice(3 + count),
  };
};
