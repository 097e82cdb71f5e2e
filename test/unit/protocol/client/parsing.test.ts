import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { objectOf } from '../../../../protocol/client/exchange.ts';
import { interpretMutation, interpretRead, refused } from '../../../../protocol/client/interpret.ts';
import { interpretStatus } from '../../../../protocol/client/status.ts';
import { errorCodes, errorRow } from '../../../../protocol/errors.ts';
import { operations } from '../../../../protocol/operations/index.ts';
import { key, otherId, result, someId, table } from './support/answering-server.ts';

const reference = { operation: 'exec' as const, user: 7, sentAt: 0, ...key };
const row = operations.exec;

/** Bodies near and far from those of the service. */
const near = fc.record(
  {
    error: fc.oneof(fc.constantFrom(...errorCodes, 'operation_not_found', '__proto__', 'toString'), fc.anything()),
    message: fc.oneof(fc.string(), fc.anything()),
    operationId: fc.oneof(fc.constantFrom(someId, otherId, 'x'), fc.anything()),
    details: fc.anything(),
    replayed: fc.oneof(fc.boolean(), fc.anything()),
    outputExpired: fc.oneof(fc.boolean(), fc.anything()),
    exitCode: fc.oneof(fc.integer(), fc.anything()),
    truncated: fc.oneof(fc.boolean(), fc.anything()),
    timedOut: fc.oneof(fc.boolean(), fc.anything()),
    durationMs: fc.oneof(fc.nat(), fc.anything()),
    signal: fc.oneof(fc.constant(null), fc.string(), fc.anything()),
    stdout: fc.oneof(fc.string(), fc.anything()),
    stderr: fc.oneof(fc.string(), fc.anything()),
    action: fc.oneof(fc.constant('exec'), fc.anything()),
    state: fc.oneof(fc.constantFrom('running', 'finished', 'interrupted'), fc.anything()),
    httpStatus: fc.oneof(fc.constantFrom(200, 409, 500, 502, 503), fc.anything()),
    result: fc.oneof(fc.constant(result), fc.object(), fc.anything()),
  },
  { requiredKeys: [] },
);
const whole = fc.record({
  ...Object.fromEntries(Object.entries(result).map(([name, value]) => [name, fc.constant(value)])),
  operationId: fc.constant(someId),
});
const answer = fc.record({
  status: fc.oneof(fc.constantFrom(200, 400, 401, 409, 413, 500, 502, 503), fc.integer({ min: 100, max: 999 })),
  operationId: fc.constantFrom(undefined, someId),
  replayed: fc.boolean(),
  body: fc.oneof(near, whole, fc.object(), fc.constant(undefined)),
});

describe('whatever is answered', () => {
  test('a mutation is done only for a 200 with an id, and the whole result unless it says that it expired', () => {
    fc.assert(
      fc.property(answer, fc.boolean(), (given, sent) => {
        const outcome = interpretMutation(row, { came: 'answer', answer: given, sent }, reference);
        if (outcome.kind !== 'done') return;
        expect(given.status).toBe(200);
        expect([someId, otherId]).toContain(outcome.operationId);
        if (outcome.outputExpired) expect(given.body).toHaveProperty('outputExpired', true);
        else
          expect(
            row.result.safeParse({ ...outcome.result, stdout: undefined, stderr: undefined }).error?.issues ?? [],
          ).toEqual([expect.objectContaining({ code: 'unrecognized_keys', keys: ['stdout', 'stderr'] })]);
      }),
      { numRuns: 3_000 },
    );
  });

  test('a mutation that may have left whole is failed only for a code without effect, with its own status', () => {
    fc.assert(
      fc.property(answer, (given) => {
        const outcome = interpretMutation(row, { came: 'answer', answer: given, sent: true }, reference);
        if (outcome.kind !== 'failed') return;
        if (outcome.code === 'not_sent') throw new Error('it was sent');
        expect(errorRow(outcome.code)).toMatchObject({ effect: 'none', status: given.status });
        expect(given.body).toMatchObject({ error: outcome.code, message: outcome.message });
      }),
      { numRuns: 3_000 },
    );
  });

  test('and a mutation that did not leave whole is never uncertain', () => {
    fc.assert(
      fc.property(answer, (given) => {
        const outcome = interpretMutation(row, { came: 'answer', answer: given, sent: false }, reference);
        expect(outcome.kind).not.toBe('uncertain');
      }),
    );
  });

  test('a read is done only for a whole result', () => {
    fc.assert(
      fc.property(answer, (given) => {
        const outcome = interpretRead(table.look, { came: 'answer', answer: given, sent: true });
        if (outcome.kind === 'done') expect(Object.keys(outcome.result).sort()).toEqual(Object.keys(result).sort());
      }),
    );
  });

  test('the ledger says done only for what finished with 200 and no error, of this action and id', () => {
    fc.assert(
      fc.property(answer, (given) => {
        const came = { came: 'answer', answer: given, sent: true } as const;
        const found = interpretStatus(row, came, { operationId: someId }, reference);
        if (found.kind === 'no_record') expect(given).toMatchObject({ status: 404 });
        if (found.kind !== 'done') return;
        expect(given).toMatchObject({
          status: 200,
          body: { operationId: someId, action: 'exec', state: 'finished', httpStatus: 200 },
        });
        expect((given.body as { error?: unknown }).error ?? null).toBeNull();
      }),
      { numRuns: 3_000 },
    );
  });

  test('bytes are an object or nothing', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array()), (pieces) => {
        const value = objectOf(pieces);
        if (value !== undefined) expect(Object.prototype.toString.call(value)).toBe('[object Object]');
      }),
    );
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.nat(), (value, cut) => {
        const bytes = new TextEncoder().encode(JSON.stringify(value));
        const at = cut % (bytes.length + 1);
        expect(objectOf([bytes.subarray(0, at), bytes.subarray(at)])).toEqual(JSON.parse(JSON.stringify(value)));
        if (at < bytes.length) expect(objectOf([bytes.subarray(0, at)])).toBeUndefined();
      }),
    );
  });
});

describe('a refusal in favour of another operation', () => {
  const told = { code: 'busy', message: 'x', operationId: someId, replayed: false } as const;

  test('leads to that one, never to an id that this request was given in passing', () => {
    const details = { operationId: otherId, state: 'interrupted', outcome: 'killed_link_lost' };
    expect(refused({ ...told, effect: 'running', details }, reference)).toEqual({
      ...reference,
      kind: 'running',
      operationId: otherId,
      recorded: true,
    });
    expect(refused({ ...told, effect: 'running', details: undefined }, reference)).toMatchObject({
      kind: 'running',
      operationId: undefined,
    });
    expect(refused({ ...told, effect: 'interrupted', details }, reference)).toEqual({
      kind: 'interrupted',
      operationId: otherId,
      outcome: 'killed_link_lost',
    });
    expect(refused({ ...told, effect: 'interrupted', details: null }, reference)).toMatchObject({
      kind: 'interrupted',
      operationId: undefined,
      outcome: undefined,
    });
  });
});
