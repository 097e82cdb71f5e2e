/**
 * Purpose: the handlers of `/v1/process/…`, but for start: they look at handles, and speak to what runs.
 * Rights: none of their own; what they ask goes to the process's supervisor.
 * Called by: dispatch.ts, with params that passed the schema.
 * Fails: with refusals. A mutation is looked at before it begins, and once more when it is on record: meanwhile it may
 * have become impossible, and then it had no effect.
 */
import { processReadBytesMax, waitingReadsMax } from '../../protocol/limits.ts';
import type { Params, Result } from '../../protocol/operations/index.ts';
import { canonicalWorkspaceId } from '../../protocol/operations/process-fields.ts';
import type { HandlerContext, Handlers } from '../handlers.ts';
import { followWaiting } from '../processes/follow.ts';
import type { Process } from '../processes/process.ts';
import type { Processes } from '../processes/processes.ts';
import { readWaiting } from '../processes/read.ts';

type ProcessHandlers = Pick<
  Handlers,
  | 'process.stream'
  | 'process.status'
  | 'process.read'
  | 'process.write'
  | 'process.resize'
  | 'process.terminate'
  | 'process.list'
>;

const stateOf = ({ facts, termination }: Process) => ({
  state: termination === undefined ? ('running' as const) : ('exited' as const),
  tty: facts.tty,
  startedAt: facts.startedAt.toISOString(),
});

/** Makes the handlers. */
export const processHandlers = (processes: Processes): ProcessHandlers => {
  /** Reads that wait: beside those of streams, which the gateway bounds, they must not take all places of the link. */
  let waiting = 0;

  const status = async ({ processId }: Params<'process.status'>): Promise<Result<'process.status'>> => {
    const process = processes.get(processId);
    return { ...stateOf(process), termination: process.termination ?? null };
  };

  const read = async (params: Params<'process.read'>, context: HandlerContext): Promise<Result<'process.read'>> => {
    const {
      processId,
      stream = 'stdout',
      from,
      maxBytes = processReadBytesMax,
      waitMs = 0,
      encoding = 'utf8',
    } = params;
    const request = { stream, from, bytesMax: maxBytes, encoding };
    waiting += 1;
    try {
      const wait = { ...context, waitMs: waiting > waitingReadsMax ? 0 : waitMs };
      return await readWaiting(processes.get(processId), request, wait);
    } finally {
      waiting -= 1;
    }
  };

  const stream = async (
    { processId, stdout, stderr, waitMs }: Params<'process.stream'>,
    context: HandlerContext,
  ): Promise<Result<'process.stream'>> =>
    followWaiting(processes.get(processId), { stdout, stderr }, { ...context, waitMs });

  const write = async (
    params: Params<'process.write'>,
    { begin }: HandlerContext,
  ): Promise<Result<'process.write'>> => {
    const { processId, data, encoding = 'utf8', eof = false, writeId } = params;
    const process = processes.get(processId);
    const input = { data: Buffer.from(data, encoding), eof, writeId };
    process.checkInput(input);
    await begin();
    return { written: process.write(input) };
  };

  const resize = async (
    params: Params<'process.resize'>,
    { begin }: HandlerContext,
  ): Promise<Result<'process.resize'>> => {
    const { processId, rows, cols } = params;
    const process = processes.get(processId);
    process.checkResize();
    await begin();
    process.resize({ rows, cols });
    return { resized: true };
  };

  const terminate = async (
    { processId, signal }: Params<'process.terminate'>,
    { begin }: HandlerContext,
  ): Promise<Result<'process.terminate'>> => {
    const process = processes.get(processId);
    await begin();
    process.terminate(signal);
    if (signal === undefined || signal === 'SIGKILL') await processes.gone(process);
    return { termination: process.termination ?? null };
  };

  const list = async ({ workspaceId }: Params<'process.list'>): Promise<Result<'process.list'>> => ({
    processes: processes.of(canonicalWorkspaceId(workspaceId)).map((process) => ({
      processId: process.facts.processId,
      tool: process.facts.tool,
      ...stateOf(process),
    })),
  });

  return {
    'process.status': status,
    'process.read': read,
    'process.write': write,
    'process.resize': resize,
    'process.terminate': terminate,
    'process.list': list,
    'process.stream': stream,
  };
};
