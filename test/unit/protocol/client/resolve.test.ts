import type { ServerResponse } from 'node:http';
import { describe, expect, test, vi } from 'vitest';
import type { Reference } from '../../../../protocol/client.ts';
import { type ErrorCode, errorCodes, errorRow } from '../../../../protocol/errors.ts';
import {
  AnsweringServer,
  clientOf,
  key,
  otherId,
  result,
  type Seen,
  say,
  someId,
  startRawServer,
} from './support/answering-server.ts';

const reference = (parts: Partial<Reference<'exec'>> = {}): Reference<'exec'> => ({
  operation: 'exec',
  user: 7,
  sentAt: Date.now(),
  ...key,
  ...parts,
});
const withId = () => reference({ operationId: someId });
const record = { operationId: someId, kind: 'exec', action: 'exec', startedAt: '2026-01-01T00:00:00Z' };
const ok = { ...record, state: 'finished', outcome: 'ok', httpStatus: 200, error: null };
const notFound = (response: ServerResponse) => say(response, 404, { error: 'operation_not_found', message: 'None.' });

/** Asks a ledger that answers each question as the test says. */
const resolved = async (
  asked: Reference<'exec'>,
  answer: (response: ServerResponse, seen: Seen) => void,
  waitMs = 0,
) => {
  const server = await AnsweringServer.start(answer);
  const found = await clientOf(server.url).resolve(asked, { waitMs });
  for (const { path } of server.seen) expect(path).toBe('/v1/operation/status');
  return { found, asked: server.seen.map(({ body }) => body) };
};
const resolvedBy = async (body: object, status = 200) =>
  (await resolved(withId(), (response) => say(response, status, body))).found;

describe('the question', () => {
  test('is by id where there is one, else by key', async () => {
    const answer = (response: ServerResponse) => say(response, 200, ok);
    expect((await resolved(withId(), answer)).asked).toEqual([{ operationId: someId }]);
    expect((await resolved(reference(), answer)).asked).toEqual([{ user: 7, ...key }]);
  });

  test('is never asked when there is nothing to ask by', async () => {
    const { found, asked } = await resolved(reference({ user: undefined }), notFound, 60_000);
    expect(found).toMatchObject({ kind: 'unresolved', why: 'nothing_to_ask_by' });
    expect(asked).toEqual([]);
  });

  test('has no key and no mutation in it', async () => {
    const server = await AnsweringServer.start((response) => say(response, 200, ok));
    await clientOf(server.url).resolve(withId(), { waitMs: 0 });
    expect(server.seen[0]?.headers).not.toHaveProperty('idempotency-key');
  });
});

describe('what the ledger has', () => {
  test('a result', async () => {
    const done = { kind: 'done', operationId: someId, replayed: true, outputExpired: false, result };
    expect(await resolvedBy({ ...ok, result })).toStrictEqual(done);
  });

  test('an outcome without a result, or with a part of it', async () => {
    const done = { kind: 'done', operationId: someId, replayed: true, outputExpired: true };
    expect(await resolvedBy(ok)).toStrictEqual({ ...done, result: {} });
    const part = { exitCode: 2, truncated: true };
    expect(await resolvedBy({ ...ok, result: part })).toStrictEqual({ ...done, result: part });
    expect(await resolvedBy({ ...ok, result: { ...result, stdout: undefined } })).toMatchObject({
      outputExpired: true,
      result: { exitCode: 0 },
    });
  });

  test.each(errorCodes)('an operation that finished with %s', async (code) => {
    const { status, effect } = errorRow(code);
    const found = await resolvedBy({ ...ok, outcome: code, httpStatus: status, error: code });
    if (effect === 'none' || effect === 'incomplete')
      expect(found).toMatchObject({ kind: effect === 'none' ? 'failed' : effect, code, operationId: someId });
    else expect(found).toEqual({ kind: 'interrupted', operationId: someId, outcome: code });
  });

  test.each([
    ['interrupted', { ...record, state: 'interrupted', outcome: null, httpStatus: null, error: null }, undefined],
    [
      'killed, finished as uncertain',
      { ...ok, outcome: 'killed_link_lost', httpStatus: 502, error: 'uncertain' },
      'killed_link_lost',
    ],
    ['killed, though said to be well', { ...ok, outcome: 'killed_link_lost' }, 'killed_link_lost'],
  ])('an operation that was %s', async (_, body, outcome) => {
    expect(await resolvedBy(body)).toEqual({ kind: 'interrupted', operationId: someId, outcome });
  });

  test('an operation under way', async () => {
    const body = { ...record, state: 'running', outcome: null, httpStatus: null, error: null };
    const { found } = await resolved(reference(), (response) => say(response, 200, body));
    expect(found).toMatchObject({ kind: 'running', operation: 'exec', operationId: someId, recorded: true, ...key });
  });

  test.each<[string, object]>([
    ['another operation', { ...ok, operationId: otherId }],
    ['another kind of operation', { ...ok, action: 'files.write' }],
    ['an unknown state', { ...ok, state: 'paused' }],
    ['an unknown code', { ...ok, outcome: 'x', httpStatus: 418, error: 'x' }],
    ['a code with the status of another', { ...ok, httpStatus: 500, error: 'busy' }],
    ['a word that is in every object', { ...ok, httpStatus: undefined, error: 'constructor' }],
    ['a finish without a status', { ...ok, httpStatus: null }],
    ['a failure without a code', { ...ok, httpStatus: 500 }],
    ['a success with a code', { ...ok, error: 'busy' }],
    ['no id', { ...ok, operationId: undefined }],
  ])('is not believed: %s', async (_, body) => {
    expect(await resolvedBy(body)).toMatchObject({ kind: 'unresolved', why: 'wrong_answer', code: undefined });
  });
});

describe('no record', () => {
  test('means never begun, when the service had answered and knows neither id nor key', async () => {
    const { found, asked } = await resolved(withId(), notFound, 60_000);
    expect(found).toStrictEqual({ kind: 'never_began' });
    expect(asked).toEqual([{ operationId: someId }, { user: 7, ...key }]);
  });

  test('of the id is not the last word while the key has one', async () => {
    const { found } = await resolved(withId(), (response, { body }) =>
      'operationId' in Object(body) ? notFound(response) : say(response, 200, { ...ok, operationId: otherId, result }),
    );
    expect(found).toMatchObject({ kind: 'done', operationId: otherId });
  });

  test('means nothing yet, when the request may still be on its way', async () => {
    const { found } = await resolved(reference(), notFound);
    expect(found).toMatchObject({ kind: 'not_seen', ...reference({ sentAt: expect.any(Number) }) });
  });

  test('means nothing once records may have been cleared away', async () => {
    const old = { ...withId(), sentAt: Date.now() - 25 * 3_600_000 };
    expect((await resolved(old, notFound, 60_000)).found).toMatchObject({ kind: 'unresolved', why: 'too_old' });
  });

  test('of what had one is a loss, not a never', async () => {
    const lost = { kind: 'unresolved', why: 'record_lost' };
    expect((await resolved({ ...withId(), recorded: true }, notFound, 60_000)).found).toMatchObject(lost);
    const body = { ...record, state: 'running' };
    let asked = 0;
    const { found } = await resolved(
      reference(),
      (response) => {
        asked += 1;
        if (asked > 1) notFound(response);
        else say(response, 200, body);
      },
      60_000,
    );
    expect(found).toMatchObject(lost);
  });

  test.each<[string, number, string]>([
    ['a route that is not there', 404, 'route_not_found'],
    ['another status', 500, 'operation_not_found'],
  ])('is not what %s says', async (_, status, error) => {
    expect(await resolvedBy({ error, message: 'x' }, status)).toMatchObject({ kind: 'unresolved' });
  });
});

describe('when nobody can tell', () => {
  test.each<ErrorCode>(['worker_unavailable', 'unauthenticated', 'internal'])('for %s, it says so', async (code) => {
    expect(await resolvedBy({ error: code, message: 'x' }, errorRow(code).status)).toMatchObject({
      kind: 'unresolved',
      why: 'refused',
      code,
      operation: 'exec',
      ...key,
    });
  });

  test('for a connection that breaks, or can’t be made', async () => {
    const server = await startRawServer((socket) => {
      socket.once('data', () => socket.destroy());
      socket.resume();
    });
    const broken = await clientOf(server.url).resolve(withId(), { waitMs: 0 });
    expect(broken).toMatchObject({ kind: 'unresolved', why: 'no_answer' });
    const none = await clientOf(server.url.replace(/\d+$/, '1')).resolve(withId(), { waitMs: 0 });
    expect(none).toMatchObject({ kind: 'unresolved', why: 'not_sent' });
  });
});

describe('it goes on asking', () => {
  test('while it runs, is not seen or can’t be told, until it is decided', async () => {
    const answers = [
      (response: ServerResponse) => say(response, 503, { error: 'draining', message: 'x' }),
      (response: ServerResponse) => response.destroy(),
      notFound,
      (response: ServerResponse) => say(response, 200, { ...record, state: 'running' }),
      (response: ServerResponse) => say(response, 200, { ...ok, result }),
    ];
    const { found, asked } = await resolved(reference(), (response) => answers.shift()?.(response), 60_000);
    expect(found).toMatchObject({ kind: 'done', result });
    expect(asked).toHaveLength(5);
  });

  test('not when the answer can’t change', async () => {
    const body = { error: 'unauthenticated', message: 'x' };
    const { asked } = await resolved(withId(), (response) => say(response, 401, body), 60_000);
    expect(asked).toHaveLength(1);
  });

  test('not beyond its time', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    try {
      const started = performance.now();
      const asked: number[] = [];
      let over = false;
      const pending = clientOf('http://runner', {
        fetch: async () => {
          asked.push(performance.now() - started);
          return new Response(JSON.stringify({ ...record, state: 'running' }));
        },
      })
        .resolve(reference(), { waitMs: 250 })
        .finally(() => {
          over = true;
        });
      while (!over) {
        // An answer is read as a whole before the clock goes on.
        for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
        await vi.advanceTimersByTimeAsync(50);
      }
      expect(await pending).toMatchObject({ kind: 'running' });
      expect(asked).toEqual([0, 100, 250]);
    } finally {
      vi.useRealTimers();
    }
  });

  test('not after the signal, between two questions', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const controller = new AbortController();
      let asked = 0;
      const pending = clientOf('http://runner', {
        fetch: async () => {
          asked += 1;
          return new Response(JSON.stringify({ ...record, state: 'running' }));
        },
      }).resolve(withId(), { waitMs: 60_000, signal: controller.signal });
      // The first pause is over; only the one after the second answer is left.
      await vi.advanceTimersByTimeAsync(150);
      while (asked < 2 || vi.getTimerCount() !== 1) await new Promise((resolve) => setImmediate(resolve));
      expect([asked, vi.getTimerCount()]).toEqual([2, 1]);
      controller.abort();
      expect(await pending).toMatchObject({ kind: 'running' });
      expect([asked, vi.getTimerCount()]).toEqual([2, 0]);
    } finally {
      vi.useRealTimers();
    }
  });

  test('not after the signal, while it asks', async () => {
    const asking = new AbortController();
    const silent = await AnsweringServer.start(() => asking.abort());
    expect(await clientOf(silent.url).resolve(withId(), { waitMs: 60_000, signal: asking.signal })).toMatchObject({
      kind: 'unresolved',
      why: 'aborted',
    });
    expect(silent.seen).toHaveLength(1);
  });

  test('never longer than 10 s for one question', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const pending = clientOf('http://runner', {
        fetch: (_url, { signal }) =>
          new Promise((_, reject) => {
            signal.addEventListener('abort', () => reject(signal.reason));
          }),
        answerMs: 600_000,
      }).resolve(withId(), { waitMs: 0 });
      await vi.advanceTimersByTimeAsync(10_000);
      expect(await pending).toMatchObject({ kind: 'unresolved', why: 'not_sent' });
    } finally {
      vi.useRealTimers();
    }
  });
});
