import type { z } from 'zod';
import type { ErrorCode } from './errors.ts';
import { errorRow, Refusal } from './errors.ts';
import type { Operation, SizeLimits } from './operation.ts';

const nameable = /^[A-Za-z_][A-Za-z0-9_]{0,31}$/;

/** `args[3]`; a field that the caller made up is named only if it looks like a name. */
const fieldName = (path: readonly PropertyKey[]): string =>
  path
    .map((part, index) => {
      if (typeof part === 'number') return `[${part}]`;
      const name = nameable.test(String(part)) ? String(part) : '?';
      return index === 0 ? name : `.${name}`;
    })
    .join('');

const sentence = (issue: z.core.$ZodIssue): string => {
  if (issue.code === 'unrecognized_keys') {
    const named = issue.keys.find((key) => nameable.test(key));
    return named === undefined ? 'There is an unknown field.' : `There is an unknown field "${named}".`;
  }
  const field = fieldName(issue.path);
  if (field === '')
    return issue.code === 'custom' ? `The request ${issue.message}.` : 'The request must be a JSON object.';
  const missing = issue.code === 'invalid_type' && issue.input === undefined;
  if (missing) return `The field "${field}" is missing.`;
  if (issue.code === 'invalid_type') return `The field "${field}" must be of type ${issue.expected}.`;
  if (issue.code === 'custom') return `The field "${field}" ${issue.message}.`;
  return `The field "${field}" is not valid.`;
};

const codeOf = (issue: z.core.$ZodIssue): ErrorCode =>
  issue.code === 'custom' && issue.params?.['code'] ? (issue.params['code'] as ErrorCode) : 'bad_request';

/** One sentence: about the field, where one is malformed; else the code's own, as for what is not there. */
const refusalOf = (issue: z.core.$ZodIssue): Refusal => {
  const code = codeOf(issue);
  const isOfField = errorRow(code).status === 400 && issue.path.length > 0;
  return code === 'bad_request' || isOfField ? new Refusal(code, undefined, sentence(issue)) : new Refusal(code);
};

/**
 * Checks a value from outside against a schema.
 * @throws Refusal `bad_request` or the code that the failed check carries; what is wrong names the field, never its value
 */
export const check = <Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> => {
  const outcome = schema.safeParse(value, { reportInput: true });
  if (outcome.success) return outcome.data;
  const { issues } = outcome.error;
  const issue = issues.find((candidate) => codeOf(candidate) === 'bad_request') ?? issues[0];
  if (issue === undefined) throw new Error('a failed check names no issue');
  throw refusalOf(issue);
};

/**
 * Checks the fields of a checked request whose size the settings limit, in bytes of UTF-8.
 * @throws Refusal `bad_request`
 */
export const checkSizes = (row: Operation, params: object, limits: SizeLimits): void => {
  for (const [field, bytesMax] of Object.entries(row.sizes?.(limits) ?? {})) {
    const value: unknown = Object.getOwnPropertyDescriptor(params, field)?.value;
    const bytes = typeof value === 'string' ? Buffer.byteLength(value) : 0;
    if (bytesMax > 0 && bytes > bytesMax)
      throw new Refusal('bad_request', undefined, `The field "${field}" is larger than this service takes.`);
  }
};
