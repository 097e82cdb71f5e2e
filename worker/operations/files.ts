/**
 * Purpose: the handlers of the file routes: from checked params to one call of the user's fs helper, and back.
 * Rights: root with the three capabilities, used through spaces.ts and the pool only; no path is touched here.
 * Called by: dispatch.ts, with params that passed the schema.
 * Fails: with the helper's refusals; an answer that is not one is `file_failed` for a read, `uncertain` for a mutation.
 */
import { checkSizes } from '../../protocol/check.ts';
import { Refusal } from '../../protocol/errors.ts';
import { listEntriesMax, readBytesMax, readProbeBytes } from '../../protocol/limits.ts';
import { filesDelete } from '../../protocol/operations/files-delete.ts';
import { filesWrite } from '../../protocol/operations/files-write.ts';
import type { Params, Result } from '../../protocol/operations/index.ts';
import type { HandlerContext, Handlers } from '../handlers.ts';
import { change, type FileDependencies } from './file-helpers.ts';
import { resultOf } from './fs-results.ts';

type FileHandlers = Pick<Handlers, 'files.list' | 'files.read' | 'files.write' | 'files.delete'>;

/** Makes the handlers of the file routes. */
export const fileHandlers = (dependencies: FileDependencies): FileHandlers => {
  const { config, spaces, helpers } = dependencies;
  const optionsOf = ({ signal }: HandlerContext) => ({ deadlineMs: config.fileTimeoutMs, signal });

  const list = async ({ user, path = '' }: Params<'files.list'>, context: HandlerContext) => {
    spaces.ensure(user);
    const answer = await helpers.call(user, { verb: 'list', path, entriesMax: listEntriesMax }, optionsOf(context));
    return { path, ...resultOf('list', answer, 'file_failed') };
  };

  const read = async ({ user, path = '' }: Params<'files.read'>, context: HandlerContext) => {
    spaces.ensure(user);
    const limits = { bytesMax: readBytesMax, probeBytes: readProbeBytes };
    const answer = await helpers.call(user, { verb: 'read', path, ...limits }, optionsOf(context));
    return { path, ...resultOf('read', answer, 'file_failed') };
  };

  const write = async (params: Params<'files.write'>, context: HandlerContext): Promise<Result<'files.write'>> => {
    // The gateway's settings can be others in a deployment of two containers; only these count.
    checkSizes(filesWrite, params, { writeBytes: config.writeBytesMax });
    const { user, path = '', content } = params;
    const call = { verb: 'write', path, content } as const;
    const answer = await change(
      dependencies,
      { user, action: filesWrite.audit, grows: true, call, deadlineMs: config.fileTimeoutMs },
      context,
    );
    const { size } = resultOf('write', answer, 'uncertain');
    if (size !== Buffer.byteLength(content)) throw new Refusal('uncertain');
    return { written: true, size };
  };

  const remove = async ({ user, path = '' }: Params<'files.delete'>, context: HandlerContext) => {
    const call = { verb: 'delete', path } as const;
    const answer = await change(
      dependencies,
      { user, action: filesDelete.audit, grows: false, call, deadlineMs: config.fileTimeoutMs },
      context,
    );
    resultOf('delete', answer, 'uncertain');
    return { deleted: true } as const;
  };

  return { 'files.list': list, 'files.read': read, 'files.write': write, 'files.delete': remove };
};
