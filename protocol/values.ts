import { z } from 'zod';
import type { ErrorCode } from './errors.ts';
import { argumentsMax, environmentEntriesMax, pathLengthMax, userNumberMax } from './limits.ts';

/**
 * Marks a failed check with the code that it is answered with; checks without it are `bad_request`.
 * @param error the end of the sentence 'The field "…" ….', for a code with status 400
 */
export const answeredWith = (code: ErrorCode, error?: string) => ({ error, params: { code } });

const withoutNul = (text: string): boolean => !text.includes('\0');

/** A string that survives UTF-8: a lone surrogate would silently become U+FFFD on its way. */
export const text = z.string().refine((value) => value.isWellFormed(), 'must be well-formed Unicode');

/** A string that can be an argument of execve(2). */
export const argumentText = text.refine(withoutNul, 'must not contain NUL');

/** The content of a text file. */
export const fileText = text.refine(withoutNul, 'must not contain NUL');

/** The number that the backend gives a person for ever; uid = gid = 20000 + n. */
export const userNumber = z.int().min(0).max(userNumberMax);

/** The caller's arguments of a tool. Their meaning is the caller's to judge. */
export const argumentList = z.array(argumentText).max(argumentsMax);

/** A key is a POSIX name: `=` or NUL in it would change which variable is set. */
export const environmentEntry = argumentText.regex(/^[A-Za-z_][A-Za-z0-9_]*=/);

/** Environment entries of one run. They go to that run alone: never to disk, log or audit. */
export const environment = z.array(environmentEntry).max(environmentEntriesMax);

/**
 * A path relative to the user's home. This is the first of two checks: it refuses what is wrong in any
 * tree; where links lead is decided while walking down from held descriptors, never from the string.
 */
export const relativePath = text
  .max(pathLengthMax)
  .refine(
    (value) => withoutNul(value) && !value.startsWith('/') && !value.split('/').includes('..'),
    answeredWith('outside_workspace', 'must be relative, without ".." and NUL'),
  );

/** An agent's id as evo-workflow takes it; never starts with a hyphen, so it can't be read as an option. */
export const agentId = z.string().regex(/^[A-Za-z0-9._][A-Za-z0-9._-]{0,127}$/);

/** What a caller names one mutation by, to be able to ask for it again. It never leaves memory: the ledger has a keyed digest of it. */
export const idempotencyKey = z.string().regex(/^[A-Za-z0-9._:-]{1,128}$/);

/** UUIDv7 of one mutating request (RFC 9562, 5.7). */
export const operationId = z.string().regex(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
