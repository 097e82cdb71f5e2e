import { describe, expectTypeOf, test } from 'vitest';
import type {
  Done,
  DoneWhole,
  Failed,
  Fetch,
  MutationOutcome,
  ReadOutcome,
  Resolution,
  Uncertain,
} from '../../../../protocol/client.ts';
import { createClient } from '../../../../protocol/client.ts';
import type { operations } from '../../../../protocol/operations/index.ts';
import { type clientOf, key, request, type table } from './support/answering-server.ts';

type Exec = (typeof operations)['exec'];
type Outcome = MutationOutcome<'exec', Exec>;

// These are checked by the compiler (`tsc -p test`); nothing of them runs.
describe('the types', () => {
  test('let nobody take what is uncertain for done', () => {
    const use = (outcome: Outcome): number | undefined => {
      // @ts-expect-error a result is there only after looking at the kind
      outcome.result;
      if (outcome.kind === 'uncertain') {
        // @ts-expect-error what is uncertain has no result
        outcome.result;
        return undefined;
      }
      // @ts-expect-error what is not uncertain is not done for that
      outcome.result;
      return outcome.kind === 'done' ? outcome.result.exitCode : undefined;
    };
    expectTypeOf(use).returns.toEqualTypeOf<number | undefined>();
    expectTypeOf<Uncertain<'exec'>>().not.toExtend<Done<Exec>>();
    expectTypeOf<Uncertain<'exec'>>().not.toExtend<Failed>();
    expectTypeOf<Extract<Outcome, { result: unknown }>['kind']>().toEqualTypeOf<'done'>();
  });

  test('let nobody take an expired result for a whole one', () => {
    const use = (done: Done<Exec>): string => {
      // @ts-expect-error stdout may be gone
      const maybe: string = done.result.stdout;
      return done.outputExpired ? maybe : done.result.stdout;
    };
    expectTypeOf(use).toBeFunction();
    expectTypeOf<DoneWhole<Exec>['result']>().toExtend<{ exitCode: number; stdout: string; stderr: string }>();
  });

  test('tell all the ways it can come out, and no other', () => {
    type Kind = 'done' | 'failed' | 'incomplete' | 'interrupted' | 'running' | 'uncertain';
    expectTypeOf<Outcome['kind']>().toEqualTypeOf<Kind>();
    type Found = Exclude<Kind, 'uncertain'> | 'never_began' | 'not_seen' | 'unresolved';
    expectTypeOf<Resolution<'exec', Exec>['kind']>().toEqualTypeOf<Found>();
    expectTypeOf<ReadOutcome<Exec>['kind']>().toEqualTypeOf<'done' | 'failed' | 'no_answer'>();
  });

  test('give a failure the codes that mean one, and each its details', () => {
    expectTypeOf<'busy' | 'not_sent'>().toExtend<Failed['code']>();
    expectTypeOf<'uncertain' | 'internal' | 'kill_incomplete'>().not.toExtend<Failed['code']>();
    expectTypeOf<Extract<Failed['code'], 'uncertain' | 'internal' | 'kill_incomplete'>>().toBeNever();
    const use = (failed: Failed) => (failed.code === 'busy' ? failed.details?.action : undefined);
    expectTypeOf(use).returns.toEqualTypeOf<string | undefined>();
  });

  test('want the row’s request, and of a mutation a key', () => {
    const use = (client: ReturnType<typeof clientOf>) => {
      void client.call('exec', request, key);
      void client.call('look', request);
      // @ts-expect-error no key
      void client.call('exec', request);
      // @ts-expect-error no such operation
      void client.call('other', request, key);
      // @ts-expect-error a field of another type
      void client.call('exec', { ...request, user: '7' }, key);
      // @ts-expect-error a field less
      void client.call('exec', { user: 7 }, key);
      // @ts-expect-error a read has nothing to resolve
      void client.resolve({ operation: 'look', sentAt: 0, ...key }, { waitMs: 0 });
    };
    expectTypeOf(use).toBeFunction();
    expectTypeOf<(typeof table)['look']['effect']>().toEqualTypeOf<'read'>();
  });

  test('fit what they are used with', () => {
    expectTypeOf(globalThis.fetch).toExtend<Fetch>();
    expectTypeOf(createClient).returns.toHaveProperty('call');
    expectTypeOf<Uncertain<'exec'>>().toExtend<Parameters<ReturnType<typeof createClient>['resolve']>[0]>();
  });
});
