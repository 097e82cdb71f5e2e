import { z } from 'zod';
import type { ErrorRow } from './row.ts';

const stepDetails = z.strictObject({ step: z.string().max(32), errno: z.string().max(32) });

/** 5xx: what was asked for is in order, and the service could not do it, or not now. */
export const failedRows = {
  exec_failed: {
    status: 500,
    retry: 'change',
    effect: 'none',
    blame: 'operator',
    text: 'The tool could not be started; it has not run.',
    details: stepDetails,
  },
  limit_failed: {
    status: 500,
    retry: 'later',
    effect: 'none',
    blame: 'operator',
    text: 'The limits of the run could not be set; the tool has not run.',
    details: stepDetails,
  },
  kill_incomplete: {
    status: 500,
    retry: 'ask',
    effect: 'incomplete',
    blame: 'operator',
    text: 'Some process of the run could not be ended; the user stays locked until it is gone.',
  },
  workspace_broken: {
    status: 500,
    retry: 'change',
    effect: 'none',
    blame: 'operator',
    text: "The user's space is not as this service made it; it is left alone for a person to look at.",
  },
  file_failed: {
    status: 500,
    retry: 'change',
    effect: 'incomplete',
    blame: 'tenant',
    text: 'What is there did not let this be done as the user; of a folder to delete, a part may be gone.',
  },
  write_failed: {
    status: 500,
    retry: 'later',
    effect: 'none',
    blame: 'tenant',
    text: 'The file could not be written; what was there is still as it was.',
  },
  reset_failed: {
    status: 500,
    retry: 'later',
    effect: 'incomplete',
    blame: 'tenant',
    text: 'The workspace could not be reset to the end; the next reset goes on from there.',
  },
  usage_failed: {
    status: 500,
    retry: 'later',
    effect: 'none',
    blame: 'tenant',
    text: 'What the user’s space holds could not be counted, so nobody can say that it is below its limit.',
  },
  internal: {
    status: 500,
    retry: 'ask',
    effect: 'unknown',
    blame: 'service',
    text: 'Something unforeseen went wrong.',
  },
  uncertain: {
    status: 502,
    retry: 'ask',
    effect: 'unknown',
    blame: 'service',
    text: 'The operation may or may not have taken effect; it will not be tried again by itself.',
  },
  worker_unavailable: {
    status: 503,
    retry: 'later',
    effect: 'none',
    blame: 'service',
    text: 'The worker cannot be reached; nothing was done.',
  },
  ledger_unavailable: {
    status: 503,
    retry: 'later',
    effect: 'none',
    blame: 'operator',
    text: 'The ledger of operations cannot be used; nothing was done.',
  },
  overloaded: {
    status: 503,
    retry: 'later',
    effect: 'none',
    blame: 'service',
    text: 'Too much is under way already; nothing was done.',
  },
  draining: {
    status: 503,
    retry: 'later',
    effect: 'none',
    blame: 'service',
    text: 'The service is stopping; nothing was done.',
  },
  disk_quota: {
    status: 507,
    retry: 'change',
    effect: 'none',
    blame: 'tenant',
    text: 'The user’s space is full: delete something first.',
  },
} as const satisfies Record<string, ErrorRow>;
