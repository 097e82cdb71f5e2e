/**
 * Purpose: what ends an operation of the helper early, told apart: a refusal, a failed system call, a bug.
 * Rights: none of its own.
 * Called by: everything in this folder.
 * Fails: never.
 */
import type { FsRefusalCode } from '../contract/fs.ts';

/** An expected refusal, on its way to the worker. */
export class FsRefusal extends Error {
  readonly code: FsRefusalCode;

  constructor(code: FsRefusalCode) {
    super(code);
    this.name = 'FsRefusal';
    this.code = code;
  }
}

/** The errno name of a failed system call; undefined for anything else that was thrown. */
export const errnoOf = (error: unknown): string | undefined => {
  if (!(error instanceof Error) || !('syscall' in error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
};

/** What a path is refused with, by the errno of a step of its walk; anything else is the verb's own failure. */
const pathErrors: Readonly<Record<string, FsRefusalCode>> = {
  ENOENT: 'not_found',
  ENAMETOOLONG: 'not_found',
  ENOTDIR: 'bad_target',
  ELOOP: 'bad_target',
};

/**
 * One system call about a name of the caller's path.
 * @throws FsRefusal for what the path itself is to blame for
 */
export const ofPath = <T>(call: () => T): T => {
  try {
    return call();
  } catch (error) {
    const code = pathErrors[errnoOf(error) ?? ''];
    throw code === undefined ? error : new FsRefusal(code);
  }
};
