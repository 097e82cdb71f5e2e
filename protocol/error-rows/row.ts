import type { z } from 'zod';

/** What a caller may do after this answer: nothing until the request is changed, ask what became of the operation, or send the same again later. */
export type RetryAdvice = 'change' | 'ask' | 'later';

/**
 * What a mutation came to that is answered with this code. `none`: certainly no effect. `incomplete`: it had, or
 * may have had, a part of its effect, and its key stays taken. `running`, `interrupted`: so stands the operation that its key names.
 * `unknown`: only the ledger can tell, if anything can.
 */
export type Effect = 'none' | 'incomplete' | 'running' | 'interrupted' | 'unknown';

/** Who can mend it. `tenant` is the person whose space it is (or a tool of theirs). */
export type Blame = 'caller' | 'tenant' | 'operator' | 'service';

/** One code of the list. */
export interface ErrorRow {
  /** The one HTTP status of this code. */
  readonly status: number;
  readonly retry: RetryAdvice;
  readonly effect: Effect;
  readonly blame: Blame;
  /** One sentence for a person. Fixed: it never holds anything of the request. */
  readonly text: string;
  /** The closed shape of `details`, for the codes that have some. */
  readonly details?: z.ZodType;
}
