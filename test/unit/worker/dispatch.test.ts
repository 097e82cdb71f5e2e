import { describe, expect, it, vi } from 'vitest';
import type { Outcome } from '../../../protocol/envelope.ts';
import { type ErrorCode, errorCodes, Refusal } from '../../../protocol/errors.ts';
import { ProtocolViolation } from '../../../protocol/msgpack-check.ts';
import { mintOperationId } from '../../../protocol/operation-id.ts';
import type { Result } from '../../../protocol/operations/index.ts';
import { Dispatch, type DispatchDependencies } from '../../../worker/dispatch.ts';
import type { HandlerContext, Handlers } from '../../../worker/handlers.ts';
import { Outputs } from '../../../worker/outputs.ts';
import { collectingAudit, collectingLog, type Line } from './support/collect.ts';
import { handlersWith } from './support/handlers.ts';
import { ledgerOfThisFile } from './support/ledger.ts';

type Exec = Handlers['exec'];

const result: Result<'exec'> = { exitCode: 0, truncated: false, timedOut: false, durationMs: 3, signal: null };
const params = { user: 7, tool: 'git', args: ['status'] };

const openChannel = { credit: (): number => Number.MAX_SAFE_INTEGER, send: (): void => undefined };

interface Asked {
  readonly params?: unknown;
  readonly operationId?: string | undefined;
  readonly signal?: AbortSignal;
  readonly outputs?: Outputs;
}

const sharedLedger = ledgerOfThisFile();

const setup = async (handler: Exec, more: Partial<Pick<DispatchDependencies, 'userRange' | 'overloaded'>> = {}) => {
  const { log, lines: logged } = collectingLog();
  const { audit, lines: audited } = collectingAudit();
  const { mutations, ledger } = sharedLedger();
  const exec = vi.fn<Exec>(async (given, context) => {
    await context.begin();
    return handler(given, context);
  });
  const handlers = handlersWith({ exec });
  const userRange = { first: 0, last: 1_000_000 };
  const dispatch = new Dispatch({ handlers, mutations, audit, log, userRange, overloaded: () => false, ...more });
  const ask = (asked: Asked = {}): Promise<Outcome> => {
    const operationId = 'operationId' in asked ? asked.operationId : mintOperationId();
    return dispatch.call({
      request: {
        kind: 'request',
        id: 1,
        operation: 'exec',
        params: 'params' in asked ? asked.params : params,
        ...(operationId === undefined ? {} : { operationId }),
      },
      signal: asked.signal ?? new AbortController().signal,
      outputs: asked.outputs ?? new Outputs(openChannel, ['stdout', 'stderr']),
      room: async () => undefined,
    });
  };
  return { dispatch, exec, ask, logged, audited, ledger };
};

const succeeds: Exec = async () => result;

const refuses =
  (code: ErrorCode, details?: Readonly<Record<string, unknown>>): Exec =>
  async () => {
    throw new Refusal(code, details);
  };

const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const ms = expect.any(Number);

/** The one line that was audited. */
const onlyLine = (lines: readonly Line[]): Line => {
  expect(lines).toHaveLength(1);
  return lines[0] ?? {};
};

describe('an operation that succeeds', () => {
  it('answers with its result and its streams, and is audited with the facts that it noted', async () => {
    const operationId = mintOperationId();
    const { ask, exec, audited, logged } = await setup(async (_params, { note, outputs }) => {
      note({ tool: 'git', args: 1 });
      outputs.write('stdout', Buffer.from('abc'), () => undefined);
      outputs.markCut('stderr');
      note({ exit: 0 });
      return result;
    });
    expect(await ask({ operationId })).toStrictEqual({
      ok: true,
      result,
      streams: { stdout: { bytes: 3, cut: false }, stderr: { bytes: 0, cut: true } },
    });
    expect(exec).toHaveBeenCalledTimes(1);
    expect(exec.mock.calls[0]?.[0]).toStrictEqual(params);
    expect(exec.mock.calls[0]?.[1].operationId).toBe(operationId);
    expect(onlyLine(audited())).toStrictEqual({
      time,
      action: 'exec',
      user: 7,
      tool: 'git',
      args: 1,
      exit: 0,
      ms,
      status: 'ok',
      operationId,
    });
    expect(logged).toStrictEqual([]);
  });

  it('can have another status than ok', async () => {
    const { ask, audited } = await setup(async (_params, { note }) => {
      note({ exit: -1, status: 'timeout' });
      return result;
    });
    expect((await ask()).ok).toBe(true);
    expect(onlyLine(audited())).toMatchObject({ status: 'timeout', exit: -1 });
  });

  it('answers only when all of its output is on its way', async () => {
    let credit = 0;
    const outputs = new Outputs({ credit: () => credit, send: () => undefined }, ['stdout', 'stderr']);
    const written = Promise.withResolvers<void>();
    const { ask, audited, ledger } = await setup(async (_params, context) => {
      context.outputs.write('stdout', Buffer.from('abc'), () => undefined);
      written.resolve();
      return result;
    });
    let answered = false;
    const answer = ask({ outputs }).then(() => {
      answered = true;
    });
    await written.promise;
    // Whatever the ledger was asked for by then has been answered before these are.
    for (let turn = 0; turn < 3; turn += 1) await ledger.byId(mintOperationId());
    expect(answered).toBe(false);
    expect(audited()).toStrictEqual([]);
    credit = 10;
    outputs.flush();
    await answer;
    expect(onlyLine(audited())).toMatchObject({ status: 'ok' });
  });
});

describe('a request that the gateway cannot have checked', () => {
  const violation = async (asked: Asked): Promise<string> => {
    const { ask, exec, audited } = await setup(succeeds);
    const error: unknown = await ask(asked).catch((thrown: unknown) => thrown);
    expect(exec).not.toHaveBeenCalled();
    expect(audited(), 'the end of the link is what is audited').toStrictEqual([]);
    if (!(error instanceof ProtocolViolation)) throw new Error(`not a violation: ${String(error)}`);
    return error.message;
  };

  it('is a violation without an operation id', async () => {
    expect(await violation({ operationId: undefined })).toMatch(/missing or misplaced/);
  });

  const broken: readonly (readonly [string, unknown])[] = [
    ['no object', 'status'],
    ['nil', null],
    ['a list', [params]],
    ['no user', { tool: 'git' }],
    ['a user who is no integer', { ...params, user: 7.5 }],
    ['a user beyond the last', { ...params, user: 1_000_001 }],
    ['a negative user', { ...params, user: -1 }],
    ['a user as text', { ...params, user: '7' }],
    ['an unknown field', { ...params, uid: 0 }],
    ['null for an absent field, which the gateway leaves out', { ...params, dir: null }],
    ['arguments that are no list', { ...params, args: 'status' }],
    ['NUL in an argument', { ...params, args: ['a\0b'] }],
    ['a lone surrogate', { ...params, args: ['\ud800'] }],
    ['an absolute directory', { ...params, dir: '/etc' }],
    ['a directory with ..', { ...params, dir: 'a/../b' }],
    ['an environment entry without a name', { ...params, env: ['=x'] }],
    ['an environment entry without =', { ...params, env: ['HOME'] }],
    ['too many environment entries', { ...params, env: Array.from({ length: 129 }, () => 'A=b') }],
    ['an agent for another tool', { ...params, agent: 'a' }],
    ['an agent that starts with a hyphen', { ...params, tool: 'evo-workflow', agent: '-a' }],
  ];
  it.each(broken)('is a violation with %s', async (_name, given) => {
    expect(await violation({ params: given })).toMatch(/params that the gateway cannot have checked/);
  });

  it('tells nothing of what it held', async () => {
    expect(await violation({ params: { ...params, 'planted-secret': 1 } })).not.toContain('planted');
  });

  it('is a violation when it names an operation that is under way', async () => {
    const release = Promise.withResolvers<Result<'exec'>>();
    const { ask, exec } = await setup(() => release.promise);
    const operationId = mintOperationId();
    const first = ask({ operationId });
    await expect(ask({ operationId })).rejects.toThrow(ProtocolViolation);
    expect(exec).toHaveBeenCalledTimes(1);
    await expect(ask({ operationId }), 'the refused one did not free the id').rejects.toThrow(/used again/);
    release.resolve(result);
    expect((await first).ok).toBe(true);
  });
});

describe('the order of the checks', () => {
  const elsewhere = { userRange: { first: 100, last: 200 } };

  it('an operation id comes before the schema', async () => {
    const { ask } = await setup(succeeds);
    await expect(ask({ operationId: undefined, params: 1 })).rejects.toThrow(/operation id/);
  });

  it('the schema comes before shard, drain and load', async () => {
    const { ask, dispatch } = await setup(succeeds, { ...elsewhere, overloaded: () => true });
    dispatch.drain();
    await expect(ask({ params: { ...params, user: 'x' } })).rejects.toThrow(ProtocolViolation);
  });

  it('the shard comes before drain and load', async () => {
    const { ask, dispatch, exec, audited } = await setup(succeeds, { ...elsewhere, overloaded: () => true });
    dispatch.drain();
    const operationId = mintOperationId();
    expect(await ask({ operationId })).toStrictEqual({ ok: false, error: 'wrong_shard' });
    expect(exec).not.toHaveBeenCalled();
    expect(onlyLine(audited())).toStrictEqual({
      time,
      action: 'exec',
      user: 7,
      ms,
      status: 'denied',
      reason: 'wrong_shard',
      operationId,
    });
  });

  it('both ends of the shard are within it', async () => {
    const { ask } = await setup(succeeds, elsewhere);
    const codes = [];
    for (const user of [99, 100, 200, 201]) {
      const outcome = await ask({ params: { ...params, user } });
      codes.push(outcome.ok || outcome.error);
    }
    expect(codes).toStrictEqual(['wrong_shard', true, true, 'wrong_shard']);
  });

  it('drain comes before load', async () => {
    const { ask, dispatch, exec, audited } = await setup(succeeds, { overloaded: () => true });
    dispatch.drain();
    expect(await ask()).toStrictEqual({ ok: false, error: 'draining' });
    expect(exec).not.toHaveBeenCalled();
    expect(onlyLine(audited())).toMatchObject({ status: 'denied', reason: 'draining' });
  });

  it('load comes before the handler', async () => {
    const { ask, exec, audited } = await setup(succeeds, { overloaded: () => true });
    expect(await ask()).toStrictEqual({ ok: false, error: 'overloaded' });
    expect(exec).not.toHaveBeenCalled();
    expect(onlyLine(audited())).toMatchObject({ status: 'denied', reason: 'overloaded' });
  });

  it('what is under way goes on while draining', async () => {
    const release = Promise.withResolvers<Result<'exec'>>();
    const { ask, dispatch } = await setup(() => release.promise);
    const first = ask();
    dispatch.drain();
    expect(await ask()).toMatchObject({ error: 'draining' });
    release.resolve(result);
    expect((await first).ok).toBe(true);
  });
});

describe('an operation that is refused', () => {
  it('answers with the code and its details, and is audited by its code', async () => {
    const details = { action: 'exec', operationId: 'other' };
    const { ask, audited, logged } = await setup(refuses('busy', details));
    const operationId = mintOperationId();
    expect(await ask({ operationId })).toStrictEqual({ ok: false, error: 'busy', details });
    expect(onlyLine(audited())).toStrictEqual({
      time,
      action: 'exec',
      user: 7,
      ms,
      status: 'busy',
      reason: 'busy',
      operationId,
    });
    expect(logged).toStrictEqual([]);
  });

  /** By hand: the codes that exec may be answered with by the worker, and how each is audited. */
  const statuses: Readonly<Partial<Record<ErrorCode, string>>> = {
    tool_not_allowed: 'denied',
    workspace_broken: 'error',
    disk_quota: 'denied',
    usage_failed: 'error',
    busy: 'busy',
    outside_workspace: 'denied',
    not_found: 'denied',
    bad_target: 'denied',
    exec_failed: 'error',
    limit_failed: 'error',
    kill_incomplete: 'error',
    uncertain: 'uncertain',
    worker_unavailable: 'error',
    internal: 'error',
    draining: 'denied',
    overloaded: 'denied',
    wrong_shard: 'denied',
    operation_running: 'denied',
    idempotency_conflict: 'denied',
    operation_interrupted: 'denied',
    ledger_unavailable: 'error',
  };
  it.each(errorCodes)('with %s: the code if the operation has it, internal if not', async (code) => {
    const { ask, audited, logged } = await setup(refuses(code));
    const status = statuses[code];
    expect(await ask()).toStrictEqual({ ok: false, error: status === undefined ? 'internal' : code });
    expect(onlyLine(audited())).toMatchObject(
      status === undefined ? { status: 'error', reason: 'internal' } : { status, reason: code },
    );
    expect(logged).toHaveLength(status === undefined ? 1 : 0);
  });

  it('keeps the facts that were noted before', async () => {
    const { ask, audited } = await setup(async (_params, { note }) => {
      note({ tool: 'git', args: 2 });
      throw new Refusal('workspace_broken');
    });
    await ask();
    expect(onlyLine(audited())).toMatchObject({ tool: 'git', args: 2, status: 'error', reason: 'workspace_broken' });
  });

  it('a noted status does not hide the refusal', async () => {
    const { ask, audited } = await setup(async (_params, { note }) => {
      note({ status: 'ok' });
      throw new Refusal('exec_failed');
    });
    await ask();
    expect(onlyLine(audited())).toMatchObject({ status: 'error', reason: 'exec_failed' });
  });
});

describe('an operation that goes wrong in an unforeseen way', () => {
  const secrets = { user: 7, tool: 'git', args: ['planted-argument'], dir: 'planted-dir', env: ['K=planted-value'] };

  const unforeseen: readonly (readonly [string, Exec])[] = [
    [
      'a bug',
      async () => {
        throw new TypeError('x is not a function');
      },
    ],
    [
      'a thrown value that is no error',
      async () => {
        throw 'text';
      },
    ],
    ['a refusal of another row', refuses('route_not_found')],
    ['a bad_request, which only the schema may say', refuses('bad_request')],
    ['a result of the wrong shape', async () => ({ ...result, exitCode: 256 })],
    ['a result with a field too many', async () => Object.assign({}, result, { stdout: 'x' })],
  ];
  it.each(unforeseen)('%s: internal, without detail, logged without content', async (_name, handler) => {
    const { ask, audited, logged } = await setup(handler);
    const operationId = mintOperationId();
    expect(await ask({ operationId, params: secrets })).toStrictEqual({ ok: false, error: 'internal' });
    expect(onlyLine(audited())).toStrictEqual({
      time,
      action: 'exec',
      user: 7,
      ms,
      status: 'error',
      reason: 'internal',
      operationId,
    });
    expect(logged).toHaveLength(1);
    expect(JSON.parse(logged[0] ?? '')).toMatchObject({ level: 50, msg: expect.stringMatching(/unforeseen/) });
    expect(logged.join('') + JSON.stringify(audited())).not.toContain('planted');
  });

  it('a handler that throws before it returns a promise is no other case', async () => {
    const { ask } = await setup(() => {
      throw new Error('at once');
    });
    expect(await ask()).toStrictEqual({ ok: false, error: 'internal' });
  });
});

describe('the record of a mutation', () => {
  it('is begun by its handler and finished before the answer is told', async () => {
    const seen: unknown[] = [];
    const operationId = mintOperationId();
    const { ask, ledger } = await setup(async (_params, { note }) => {
      seen.push((await ledger.byId(operationId))?.state);
      note({ exit: 3 });
      return result;
    });
    await ask({ operationId });
    expect(seen).toStrictEqual(['running']);
    expect(await ledger.byId(operationId)).toMatchObject({ state: 'finished', outcome: 'ok', exit: 3, user: 7 });
  });

  it.each([
    [
      'timeout',
      async (_params: unknown, { note }: HandlerContext) => {
        note({ status: 'timeout', exit: -1 });
        return result;
      },
    ],
    ['kill_incomplete', refuses('kill_incomplete')],
    [
      'internal',
      async () => {
        throw new Error('a bug');
      },
    ],
  ] as const)('says %s', async (outcome, handler) => {
    const operationId = mintOperationId();
    const { ask, ledger } = await setup(handler as Exec);
    await ask({ operationId });
    expect(await ledger.byId(operationId)).toMatchObject({ state: 'finished', outcome });
  });

  it('is none when it was refused before it began', async () => {
    const operationId = mintOperationId();
    const { ask, ledger, exec } = await setup(succeeds);
    exec.mockImplementationOnce(async () => {
      throw new Refusal('busy', { action: 'exec', operationId });
    });
    expect(await ask({ operationId })).toMatchObject({ ok: false, error: 'busy' });
    expect(await ledger.byId(operationId)).toBeUndefined();
  });

  it('is missed when a handler forgets it: a bug, never a success', async () => {
    const { ask, exec, logged } = await setup(succeeds);
    exec.mockImplementationOnce(async () => result);
    expect(await ask()).toStrictEqual({ ok: false, error: 'internal' });
    expect(logged).toHaveLength(1);
  });

  it('is not begun when nobody waits any more', async () => {
    const operationId = mintOperationId();
    const handler = vi.fn(succeeds);
    const { ask, ledger } = await setup(handler);
    const signal = AbortSignal.abort('link_lost');
    expect(await ask({ operationId, signal })).toStrictEqual({ ok: false, error: 'uncertain' });
    expect(handler).not.toHaveBeenCalled();
    expect(await ledger.byId(operationId)).toBeUndefined();
  });

  it.each(['link_lost', 'cancelled', 'draining'] as const)('says why it was cut short: %s', async (reason) => {
    const operationId = mintOperationId();
    const stop = new AbortController();
    const { ask, ledger } = await setup(async () => {
      stop.abort(reason);
      throw new Refusal('uncertain');
    });
    await ask({ operationId, signal: stop.signal });
    expect(await ledger.byId(operationId)).toMatchObject({
      state: 'finished',
      outcome: `killed_${reason}`,
      exit: null,
    });
  });
});

describe('an operation that nobody waits for any more', () => {
  it.each(['link_lost', 'cancelled', 'draining'] as const)('is audited with the reason %s', async (reason) => {
    const stop = new AbortController();
    const aborted = ({ signal }: HandlerContext): Promise<never> =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(new Refusal('uncertain')));
        stop.abort(reason);
      });
    const { ask, audited } = await setup((_params, context) => aborted(context));
    const answer = ask({ signal: stop.signal });
    expect(await answer).toStrictEqual({ ok: false, error: 'uncertain' });
    expect(onlyLine(audited())).toMatchObject({ status: 'error', reason });
  });

  it('is audited as what it was when it succeeded all the same', async () => {
    const stop = new AbortController();
    const { ask, audited } = await setup(async () => {
      stop.abort('cancelled');
      return result;
    });
    expect((await ask({ signal: stop.signal })).ok).toBe(true);
    const line = onlyLine(audited());
    expect(line).toMatchObject({ status: 'ok' });
    expect(line).not.toHaveProperty('reason');
  });
});

describe('content', () => {
  it('is in no audit line, whatever the outcome', async () => {
    const secret = { user: 7, tool: 'git', args: ['planted-a'], dir: 'planted-d', env: ['K=planted-e'] };
    for (const handler of [succeeds, refuses('busy'), refuses('internal')]) {
      const { ask, audited, logged } = await setup(handler);
      await ask({ params: secret });
      expect(audited()).toHaveLength(1);
      expect(JSON.stringify(audited()) + logged.join('')).not.toContain('planted');
    }
  });
});
