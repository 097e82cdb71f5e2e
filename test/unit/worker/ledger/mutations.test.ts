import { describe, expect, it } from 'vitest';
import { type ErrorCode, Refusal } from '../../../../protocol/errors.ts';
import { mintOperationId } from '../../../../protocol/operation-id.ts';
import type { Mutation, MutationEnd, Mutations, Replay } from '../../../../worker/ledger/mutations.ts';
import { openLedger } from '../support/ledger.ts';

interface Asked {
  readonly user?: number;
  readonly args?: readonly string[];
  readonly key?: string | undefined;
}

const succeeded: MutationEnd = {
  outcome: { ok: true, result: { exitCode: 0 }, streams: { stdout: { bytes: 2, cut: false } } },
  timedOut: false,
  stopped: undefined,
  exit: 0,
  streams: new Map([['stdout', Buffer.from('hi')]]),
};
const refused = (error: ErrorCode, stopped?: MutationEnd['stopped']): MutationEnd => ({
  outcome: { ok: false, error },
  timedOut: false,
  stopped,
  exit: undefined,
  streams: new Map(),
});

/** Asks for a mutation whose effect is one call of `effect`. */
const ask = (mutations: Mutations, effect: () => Promise<MutationEnd>, { user = 7, args = [], key }: Asked = {}) =>
  mutations.enter<'done' | Replay>(
    {
      operationId: mintOperationId(),
      operation: 'exec',
      user,
      params: { user, tool: 'git', args },
      idempotencyKey: key,
      cameAt: 0,
    },
    async (mutation: Mutation) => {
      await mutation.begin();
      await mutation.finish(await effect());
      return 'done';
    },
    async (earlier) => earlier,
  );

const codeOf = (answer: Promise<unknown>): Promise<unknown> =>
  answer.then(
    (value) => value,
    (error: unknown) => (error instanceof Refusal ? error.code : error),
  );

const counting = () => {
  let count = 0;
  return {
    effect: async () => {
      count += 1;
      return succeeded;
    },
    count: () => count,
  };
};

describe('a key', () => {
  it('has one effect, however many race, and the answer again after it', async () => {
    const { mutations } = await openLedger();
    const { effect, count } = counting();
    const answers = await Promise.all(Array.from({ length: 50 }, () => codeOf(ask(mutations, effect, { key: 'k' }))));
    expect(count()).toBe(1);
    expect(answers.filter((answer) => answer === 'done')).toHaveLength(1);
    expect(answers.filter((answer) => answer === 'operation_running')).toHaveLength(49);
    const again = (await ask(mutations, effect, { key: 'k' })) as Replay;
    expect(count()).toBe(1);
    expect(again.answer?.outcome).toStrictEqual(succeeded.outcome);
    expect(again.answer?.streams.get('stdout')?.toString()).toBe('hi');
  });

  it('is one user’s, and belongs to one request', async () => {
    const { mutations } = await openLedger();
    const { effect, count } = counting();
    await ask(mutations, effect, { key: 'k' });
    expect(await codeOf(ask(mutations, effect, { key: 'k', args: ['x'] }))).toBe('idempotency_conflict');
    expect(count()).toBe(1);
    expect(await ask(mutations, effect, { key: 'k', user: 8 })).toBe('done');
    expect(count()).toBe(2);
  });

  it('belongs to one request also while that is under way', async () => {
    const { mutations } = await openLedger();
    const release = Promise.withResolvers<MutationEnd>();
    const first = ask(mutations, () => release.promise, { key: 'k' });
    expect(await codeOf(ask(mutations, async () => succeeded, { key: 'k' }))).toBe('operation_running');
    expect(await codeOf(ask(mutations, async () => succeeded, { key: 'k', args: ['x'] }))).toBe('idempotency_conflict');
    release.resolve(succeeded);
    expect(await first).toBe('done');
  });

  it.each(['busy', 'overloaded', 'exec_failed', 'not_found', 'worker_unavailable', 'draining'] as const)(
    'is free after %s, which had no effect',
    async (code) => {
      const { mutations } = await openLedger();
      const { effect, count } = counting();
      await ask(mutations, async () => refused(code), { key: 'k' });
      expect(await ask(mutations, effect, { key: 'k', args: ['another'] })).toBe('done');
      expect(count()).toBe(1);
    },
  );

  it('is free after an operation that never began', async () => {
    const { mutations } = await openLedger();
    const { effect } = counting();
    const request = {
      operationId: mintOperationId(),
      operation: 'exec',
      user: 7,
      params: {},
      idempotencyKey: 'k',
      cameAt: 0,
    };
    const never = async (mutation: Mutation) => mutation.finish(refused('busy'));
    await mutations.enter(request, never, async () => undefined);
    expect(await ask(mutations, effect, { key: 'k' })).toBe('done');
  });

  it.each([
    ['killed_link_lost', refused('uncertain', 'link_lost')],
    ['killed_cancelled', refused('uncertain', 'cancelled')],
    ['killed_draining', refused('uncertain', 'draining')],
    ['uncertain', refused('uncertain')],
  ] as const)('of an operation that was cut short (%s) is never used again', async (outcome, end) => {
    const { mutations } = await openLedger();
    const { effect, count } = counting();
    await ask(mutations, async () => end, { key: 'k' });
    const again = ask(mutations, effect, { key: 'k' });
    await expect(again).rejects.toMatchObject({
      code: 'operation_interrupted',
      details: { state: 'finished', outcome },
    });
    expect(count()).toBe(0);
  });

  it('of an operation that an earlier life began is never used again', async () => {
    const first = await openLedger();
    const begun = Promise.withResolvers<void>();
    void ask(
      first.mutations,
      () => {
        begun.resolve();
        return new Promise(() => undefined);
      },
      { key: 'k' },
    );
    await begun.promise;
    await first.close();
    const { mutations } = await openLedger(first.stateDir);
    const { effect, count } = counting();
    await expect(ask(mutations, effect, { key: 'k' })).rejects.toMatchObject({
      code: 'operation_interrupted',
      details: { state: 'interrupted', outcome: null },
    });
    expect(count()).toBe(0);
  });

  it('tells the outcome in a later life, without the answer', async () => {
    const first = await openLedger();
    const { effect, count } = counting();
    await ask(first.mutations, effect, { key: 'k' });
    await ask(first.mutations, async () => refused('kill_incomplete'), { key: 'i' });
    await first.close();
    const { mutations } = await openLedger(first.stateDir);
    const again = (await ask(mutations, effect, { key: 'k' })) as Replay;
    expect(again).toMatchObject({ answer: undefined, record: { outcome: 'ok', exit: 0 } });
    expect(await ask(mutations, effect, { key: 'i' })).toMatchObject({ record: { outcome: 'kill_incomplete' } });
    expect(count()).toBe(1);
  });
});
