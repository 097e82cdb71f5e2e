import { parseWorkspaceId, userOfProcessId } from './operations/process-fields.ts';
import { userNumber } from './values.ts';

/**
 * The user that a request is about: named by itself, by its workspace or by the handle of a process; undefined when it
 * names none, or not a valid one. Fields that were not checked may be given.
 */
export const userOf = (fields: Readonly<Record<string, unknown>>): number | undefined => {
  const { user, workspaceId, processId } = fields;
  if (typeof workspaceId === 'string') return parseWorkspaceId(workspaceId)?.user;
  if (typeof processId === 'string') return userOfProcessId(processId);
  return userNumber.safeParse(user).data;
};
