import { z } from 'zod';

/** What a caller may do after this answer: nothing until the request is changed, ask what became of the operation, or send the same again later. */
export type RetryAdvice = 'change' | 'ask' | 'later';

/** Who can mend it. `tenant` is the person whose space it is (or a tool of theirs). */
export type Blame = 'caller' | 'tenant' | 'operator' | 'service';

interface ErrorRow {
  /** The one HTTP status of this code. */
  readonly status: number;
  readonly retry: RetryAdvice;
  readonly blame: Blame;
  /** One sentence for a person. Fixed: it never holds anything of the request. */
  readonly text: string;
  /** The closed shape of `details`, for the codes that have some. */
  readonly details?: z.ZodType;
}

const stepDetails = z.strictObject({ step: z.string().max(32), errno: z.string().max(32) });

/**
 * The closed list of refusals: every error that leaves the service has one of these codes.
 * A tool that fails is a result and not in here; a bug is `internal`.
 * Source: specification, HTTP API, "Rules for all routes".
 */
export const errors = {
  bad_request: { status: 400, retry: 'change', blame: 'caller', text: 'The request is not well-formed.' },
  bad_agent: {
    status: 400,
    retry: 'change',
    blame: 'caller',
    text: 'An agent is taken with the tool evo-workflow only, and must be 1 to 128 of letters, digits, dot, underscore and hyphen, not starting with a hyphen.',
  },
  outside_workspace: {
    status: 400,
    retry: 'change',
    blame: 'caller',
    text: 'The path leads out of the workspace: it must be relative, without ".." and without links that lead outside.',
  },
  bad_target: {
    status: 400,
    retry: 'change',
    blame: 'caller',
    text: 'What the path names is of the wrong kind for this operation.',
  },
  unauthenticated: { status: 401, retry: 'change', blame: 'caller', text: 'A valid service token is required.' },
  tool_not_allowed: { status: 403, retry: 'change', blame: 'caller', text: 'This tool is not on the allowlist.' },
  route_not_found: { status: 404, retry: 'change', blame: 'caller', text: 'There is no such route.' },
  not_found: { status: 404, retry: 'change', blame: 'caller', text: 'The path names nothing that exists.' },
  request_timeout: { status: 408, retry: 'later', blame: 'caller', text: 'The request did not arrive in time.' },
  busy: {
    status: 409,
    retry: 'later',
    blame: 'caller',
    text: 'Another operation of this user is under way.',
    details: z.strictObject({ action: z.string().max(64), operationId: z.string().max(64) }),
  },
  body_too_large: {
    status: 413,
    retry: 'change',
    blame: 'caller',
    text: 'The request body is larger than this service takes.',
  },
  expectation_failed: {
    status: 417,
    retry: 'change',
    blame: 'caller',
    text: 'Only "Expect: 100-continue" is understood.',
  },
  wrong_shard: { status: 421, retry: 'change', blame: 'caller', text: 'This user belongs to another shard.' },
  headers_too_large: {
    status: 431,
    retry: 'change',
    blame: 'caller',
    text: 'The request headers are larger than this service takes.',
  },
  exec_failed: {
    status: 500,
    retry: 'change',
    blame: 'operator',
    text: 'The tool could not be started; it has not run.',
    details: stepDetails,
  },
  limit_failed: {
    status: 500,
    retry: 'later',
    blame: 'operator',
    text: 'The limits of the run could not be set; the tool has not run.',
    details: stepDetails,
  },
  kill_incomplete: {
    status: 500,
    retry: 'ask',
    blame: 'operator',
    text: 'Some process of the run could not be ended; the user stays locked until it is gone.',
  },
  workspace_broken: {
    status: 500,
    retry: 'change',
    blame: 'operator',
    text: "The user's space is not as this service made it; it is left alone for a person to look at.",
  },
  usage_failed: {
    status: 500,
    retry: 'later',
    blame: 'tenant',
    text: 'What the user’s space holds could not be counted, so nobody can say that it is below its limit.',
  },
  internal: { status: 500, retry: 'ask', blame: 'service', text: 'Something unforeseen went wrong.' },
  uncertain: {
    status: 502,
    retry: 'ask',
    blame: 'service',
    text: 'The operation may or may not have taken effect; it will not be tried again by itself.',
  },
  worker_unavailable: {
    status: 503,
    retry: 'later',
    blame: 'service',
    text: 'The worker cannot be reached; nothing was done.',
  },
  overloaded: {
    status: 503,
    retry: 'later',
    blame: 'service',
    text: 'Too much is under way already; nothing was done.',
  },
  draining: { status: 503, retry: 'later', blame: 'service', text: 'The service is stopping; nothing was done.' },
  disk_quota: {
    status: 507,
    retry: 'change',
    blame: 'tenant',
    text: 'The user’s space is full: delete something first.',
  },
} as const satisfies Record<string, ErrorRow>;

/** One code of the closed list. */
export type ErrorCode = keyof typeof errors;

/** The codes, for schemas. */
export const errorCodes = Object.keys(errors) as [ErrorCode, ...ErrorCode[]];

/** The row of a code. */
export const errorRow = (code: ErrorCode): ErrorRow => errors[code];

/** An expected refusal on its way to the caller. Everything else that is thrown is a bug and answered `internal`. */
export class Refusal extends Error {
  readonly code: ErrorCode;
  readonly details: Readonly<Record<string, unknown>> | undefined;

  /** @param message a sentence of its own where the code's fixed one is too general; never a value of the request */
  constructor(code: ErrorCode, details?: Readonly<Record<string, unknown>>, message?: string) {
    super(message ?? errors[code].text);
    this.name = 'Refusal';
    this.code = code;
    this.details = details;
  }
}
