import { describe, expect, test } from 'vitest';
import { errorCodes, errorRow } from '../../../../protocol/errors.ts';
import {
  AnsweringServer,
  clientOf,
  key,
  otherId,
  request,
  result,
  say,
  someId,
  token,
} from './support/answering-server.ts';

/** What each code makes of a mutation, by hand; those of the ledger included. */
const kinds: Readonly<Record<string, string>> = {
  bad_request: 'failed',
  bad_agent: 'failed',
  outside_workspace: 'failed',
  bad_target: 'failed',
  symlink: 'failed',
  is_directory: 'failed',
  unauthenticated: 'failed',
  tool_not_allowed: 'failed',
  route_not_found: 'failed',
  not_found: 'failed',
  workspace_not_found: 'failed',
  process_not_found: 'failed',
  operation_not_found: 'failed',
  request_timeout: 'failed',
  busy: 'failed',
  process_not_running: 'failed',
  process_not_tty: 'failed',
  process_backpressure: 'failed',
  stdin_closed: 'failed',
  operation_running: 'running',
  operation_interrupted: 'interrupted',
  idempotency_conflict: 'failed',
  body_too_large: 'failed',
  expectation_failed: 'failed',
  wrong_shard: 'failed',
  headers_too_large: 'failed',
  bad_url: 'failed',
  bad_name: 'failed',
  bad_env: 'failed',
  host_not_allowed: 'failed',
  protected_branch: 'failed',
  wrong_branch: 'failed',
  no_project: 'failed',
  no_worktree: 'failed',
  exists: 'failed',
  exec_failed: 'failed',
  limit_failed: 'failed',
  kill_incomplete: 'incomplete',
  workspace_broken: 'failed',
  file_failed: 'incomplete',
  write_failed: 'failed',
  reset_failed: 'incomplete',
  usage_failed: 'failed',
  internal: 'uncertain',
  uncertain: 'uncertain',
  worker_unavailable: 'failed',
  overloaded: 'failed',
  draining: 'failed',
  ledger_unavailable: 'failed',
  disk_quota: 'failed',
};

const answering = (status: number, body: unknown, headers: Readonly<Record<string, string>> = {}) =>
  AnsweringServer.start((response) => say(response, status, body, headers));

const called = async (status: number, body: unknown, headers: Readonly<Record<string, string>> = {}) =>
  clientOf((await answering(status, body, headers)).url).call('exec', request, key);

describe('a refusal', () => {
  test.each(errorCodes)('%s is what the table says, and is asked for once', async (code) => {
    const { status, retry, text } = errorRow(code);
    const server = await answering(status, { error: code, message: text, operationId: someId });
    const outcome = await clientOf(server.url).call('exec', request, key);
    expect(outcome.kind).toBe(kinds[code]);
    if (outcome.kind === 'failed' || outcome.kind === 'incomplete')
      expect(outcome).toEqual({ kind: kinds[code], code, retry, message: text, operationId: someId, replayed: false });
    if (outcome.kind === 'uncertain')
      expect(outcome).toMatchObject({ operation: 'exec', user: 7, operationId: someId, why: 'told', code, ...key });
    expect(server.seen).toHaveLength(1);
  });

  test('has the details of its code, and no others', async () => {
    const details = { action: 'exec', operationId: otherId };
    const body = { error: 'busy', message: 'It is.', details };
    expect(await called(409, body)).toMatchObject({ kind: 'failed', code: 'busy', details, operationId: undefined });
    expect(await called(409, { ...body, details: { path: '/x' } })).toMatchObject({ code: 'busy', details: undefined });
  });

  test('that was recorded is replayed', async () => {
    const body = { error: 'exec_failed', message: 'No.', operationId: someId };
    const outcome = await called(500, body, { 'Idempotency-Replayed': 'true' });
    expect(outcome).toMatchObject({ kind: 'failed', replayed: true });
  });

  test.each([
    ['an unknown code', 409, { error: 'brand_new', message: 'x' }],
    ['a code with the status of another', 500, { error: 'busy', message: 'x' }],
    ['a code that is in every object', 400, { error: 'constructor', message: 'x' }],
    ['no message', 409, { error: 'busy' }],
    ['a list', 409, ['busy']],
    ['null', 503, null],
    ['a status that is no error', 302, { error: 'busy', message: 'x' }],
  ])('in other words than those of the service is uncertain: %s', async (_, status, body) => {
    const outcome = await called(status, body, { 'Operation-Id': someId });
    expect(outcome).toMatchObject({ kind: 'uncertain', why: 'wrong_answer', operationId: someId, code: undefined });
  });

  test('by something in between, in HTML, is uncertain', async () => {
    const server = await AnsweringServer.start((response) => {
      response.writeHead(503, { 'Content-Type': 'text/html' }).end('<h1>503 Service Unavailable</h1>');
    });
    const outcome = await clientOf(server.url).call('exec', request, key);
    expect(outcome).toMatchObject({ kind: 'uncertain', why: 'wrong_answer', operationId: undefined });
  });
});

describe('a mutation that is done', () => {
  const body = { ...result, operationId: someId };

  test('has its result and its id, and was asked for once, under its key', async () => {
    const server = await answering(200, body, { 'Operation-Id': someId });
    const outcome = await clientOf(`${server.url}/`).call('exec', request, key);
    const done = { kind: 'done', operationId: someId, replayed: false, outputExpired: false, result };
    expect(outcome).toStrictEqual(done);
    expect(server.seen).toMatchObject([
      {
        path: '/v1/exec',
        body: request,
        headers: { authorization: `Bearer ${token}`, 'idempotency-key': key.idempotencyKey },
      },
    ]);
  });

  test.each([
    ['the header', { 'Idempotency-Replayed': 'true' }, {}],
    ['the body', {}, { replayed: true }],
  ])('is known as a replay from %s', async (_, headers, fields) => {
    expect(await called(200, { ...body, ...fields }, headers)).toMatchObject({ kind: 'done', replayed: true, result });
  });

  test('long ago has what is left of its result', async () => {
    const left = { exitCode: 3, timedOut: false };
    const rest = { ...left, signal: 9, operationId: someId, replayed: true, outputExpired: true };
    expect(await called(200, rest)).toStrictEqual({
      kind: 'done',
      operationId: someId,
      replayed: true,
      outputExpired: true,
      result: left,
    });
  });

  test('may have fields that a newer service adds', async () => {
    expect(await called(200, { ...body, cpuMs: 4 })).toMatchObject({ kind: 'done', result });
  });

  test.each([
    ['a field less', { ...body, exitCode: undefined }],
    ['a stream less', { ...body, stderr: undefined }],
    ['a field of another type', { ...body, exitCode: '0' }],
    ['a stream of another type', { ...body, stdout: 1 }],
    ['no id', result],
    ['an id that is none', { ...result, operationId: 'x' }],
    ['a list', [body]],
    ['nothing', null],
  ])('is not believed with %s', async (_, wrong) => {
    expect(await called(200, wrong)).toMatchObject({ kind: 'uncertain', why: 'wrong_answer' });
  });

  test('is not believed when two ids are told, nor with another status', async () => {
    expect(await called(200, body, { 'Operation-Id': otherId })).toMatchObject({
      kind: 'uncertain',
      operationId: undefined,
    });
    expect(await called(201, body)).toMatchObject({ kind: 'uncertain', operationId: someId });
  });
});

describe('a read', () => {
  test('has a result, no key and no id', async () => {
    const server = await answering(200, result);
    expect(await clientOf(server.url).call('look', request)).toStrictEqual({ kind: 'done', result });
    expect(server.seen[0]?.headers).not.toHaveProperty('idempotency-key');
  });

  test('fails with a code, or has no answer; it is not asked for again', async () => {
    const server = await answering(500, { error: 'internal', message: 'x' });
    expect(await clientOf(server.url).call('look', request)).toMatchObject({ kind: 'failed', code: 'internal' });
    expect(server.seen).toHaveLength(1);
    const wrong = await answering(200, { ...result, exitCode: 'x' });
    expect(await clientOf(wrong.url).call('look', request)).toEqual({ kind: 'no_answer', why: 'wrong_answer' });
    expect(wrong.seen).toHaveLength(1);
  });
});

describe('a caller’s mistake', () => {
  test.each(['', 'with space', 'line\nbreak', 'x'.repeat(129), '한글'])('the key %j throws', async (idempotencyKey) => {
    const server = await answering(200, result);
    await expect(clientOf(server.url).call('exec', request, { idempotencyKey })).rejects.toThrow(TypeError);
    expect(server.seen).toHaveLength(0);
  });

  test.each(['runner:8090', 'ftp://runner', 'no'])('the address %s throws', (url) => {
    expect(() => clientOf(url)).toThrow(TypeError);
  });
});
