import { z } from 'zod';
import { userNumberMax } from '../limits.ts';
import { answeredWith, relativePath, text } from '../values.ts';

/** A workspace: the user's number for the home, or `<user>:<folder relative to home>`. */
export const workspaceId = text.max(4200).superRefine((value, context) => {
  const found = parseWorkspaceId(value);
  if (found === undefined) {
    const issue = answeredWith('workspace_not_found');
    context.addIssue({ code: 'custom', message: issue.error, params: issue.params });
    return;
  }
  const folder = relativePath.safeParse(found.folder);
  const issue = answeredWith('outside_workspace', 'must stay within the home');
  if (!folder.success) context.addIssue({ code: 'custom', message: issue.error, params: issue.params });
});

const userPart = /^(0|[1-9]\d{0,6})$/;

/** The user and the folder relative to home of a workspace; undefined for what names none. */
export const parseWorkspaceId = (value: string): { readonly user: number; readonly folder: string } | undefined => {
  const colon = value.indexOf(':');
  const [number, folder] = colon < 0 ? [value, ''] : [value.slice(0, colon), value.slice(colon + 1)];
  const user = Number(number);
  if (!userPart.test(number) || user > userNumberMax || (colon >= 0 && folder === '')) return undefined;
  return { user, folder };
};

/** One spelling for each workspace: no empty parts, no dots. */
export const canonicalWorkspaceId = (value: string): string => {
  const [user = '', folder = ''] = value.split(/:(.*)/s);
  const parts = folder.split('/').filter((part) => part !== '' && part !== '.');
  return parts.length === 0 ? user : `${user}:${parts.join('/')}`;
};

/** The handle of a process: whose it is, and what nobody can guess. Anything else is a handle that is not known. */
export const processId = text
  .max(256)
  .refine((value) => userOfProcessId(value) !== undefined, answeredWith('process_not_found'));

/** The user that a handle belongs to; undefined for what is none. */
export const userOfProcessId = (value: string): number | undefined => {
  const [, number] = /^(0|[1-9]\d{0,6})-[A-Za-z0-9_-]{22}$/.exec(value) ?? [];
  const user = Number(number);
  return number === undefined || user > userNumberMax ? undefined : user;
};

/** Of output and input. */
export const encoding = z.enum(['utf8', 'base64']);
export type Encoding = z.output<typeof encoding>;

/** The signals that a terminate call can send. */
export const processSignal = z.enum(['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGKILL']);
export type ProcessSignal = z.output<typeof processSignal>;

/** Where a process stands. It runs until nothing of it is left. */
export const processState = z.enum(['running', 'exited']);

/** How a process ended. What was not seen is null, and nothing is made up. */
export const termination = z.strictObject({
  /** `link_lost` also when nobody could see the end, since what looked after it was gone. */
  reason: z.enum(['exit', 'signal', 'timeout', 'terminated', 'link_lost']),
  exitCode: z.int().min(0).max(255).nullable(),
  signal: z.string().max(16).nullable(),
  endedAt: z.iso.datetime(),
  maxRssBytes: z.int().min(0).nullable(),
  cpuMs: z.int().min(0).nullable(),
});
export type Termination = z.output<typeof termination>;

/** An offset in a stream, bytes since its beginning. */
export const offset = z.int().min(0);
