import type { Handlers } from '../../../../worker/handlers.ts';

const unexpected = (): Promise<never> => Promise.reject(new Error('this handler was not expected to be called'));

/** A whole table of handlers, of which a test brings those that it calls. */
export const handlersWith = (some: Partial<Handlers>): Handlers => ({
  exec: unexpected,
  'files.list': unexpected,
  'files.read': unexpected,
  'files.write': unexpected,
  'files.delete': unexpected,
  'process.start': unexpected,
  'process.status': unexpected,
  'process.read': unexpected,
  'process.write': unexpected,
  'process.resize': unexpected,
  'process.terminate': unexpected,
  'process.list': unexpected,
  'process.stream': unexpected,
  'repo.clone': unexpected,
  'repo.worktree': unexpected,
  'repo.push': unexpected,
  'repo.agent_worktree': unexpected,
  'repo.agent_push': unexpected,
  usage: unexpected,
  'workspace.reset': unexpected,
  'operation.status': unexpected,
  ...some,
});
