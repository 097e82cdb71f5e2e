/**
 * Purpose: what the fs helper answered, checked. The helper runs as the user: its word is the user's.
 * Rights: none of its own.
 * Called by: the handlers of the file routes and of reset, and git workflows.
 * Fails: with the refusal that the handler names; nothing half-understood is passed on.
 */
import { z } from 'zod';
import { type FsResults, type FsVerb, fsKinds, fsProjects, fsWorktrees } from '../../helper/contract/fs.ts';
import { type ErrorCode, Refusal } from '../../protocol/errors.ts';
import { listEntriesMax, readBytesMax } from '../../protocol/limits.ts';

const size = z.int().min(0);

const schemas = {
  list: z.strictObject({
    entries: z
      .array(
        z.strictObject({
          name: z.string().min(1).max(255),
          kind: z.enum(fsKinds),
          size,
          modified: z.iso.datetime({ precision: 3 }),
        }),
      )
      .max(listEntriesMax),
    truncated: z.boolean(),
  }),
  read: z.union([
    z.strictObject({ size, text: z.literal(true), content: z.string().max(readBytesMax), reason: z.null() }),
    z.strictObject({ size, text: z.literal(false), content: z.null(), reason: z.enum(['binary', 'too_large']) }),
  ]),
  write: z.strictObject({ size }),
  delete: z.strictObject({}),
  reset: z.strictObject({}),
  repository: z.strictObject({ project: z.enum(fsProjects), worktree: z.enum(fsWorktrees).nullable() }),
  scratch: z.strictObject({}),
  unregister: z.strictObject({}),
  place: z.strictObject({}),
  clear: z.strictObject({}),
} as const satisfies { readonly [Verb in FsVerb]: z.ZodType<FsResults[Verb]> };

/**
 * The result of a verb.
 * @param otherwise what an answer of another shape means for the operation
 * @throws Refusal
 */
export const resultOf = <Verb extends FsVerb>(
  verb: Verb,
  answer: unknown,
  otherwise: ErrorCode,
): z.output<(typeof schemas)[Verb]> => {
  const outcome = schemas[verb].safeParse(answer);
  if (!outcome.success) throw new Refusal(otherwise);
  return outcome.data as z.output<(typeof schemas)[Verb]>;
};
