/** What may be logged of something unforeseen. */
export interface Fault {
  readonly type: string;
  readonly code?: string;
  readonly stack: string;
}

/**
 * Its type, its code and where in the program it came from. Never its message: it may quote the request, and
 * that of a system call names a path.
 */
export const faultOf = (error: unknown): Fault => {
  if (!(error instanceof Error)) return { type: typeof error, stack: '' };
  const { code } = error as NodeJS.ErrnoException;
  const frames = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  return { type: error.name, ...(typeof code === 'string' ? { code } : {}), stack: frames.join('\n') };
};
