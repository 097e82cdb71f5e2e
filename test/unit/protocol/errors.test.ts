import { describe, expect, it } from 'vitest';
import { type ErrorCode, errorCodes, errorRow, errors, Refusal } from '../../../protocol/errors.ts';

/** The closed list by hand: what a caller may rely on. */
const restated: Record<string, number> = {
  bad_request: 400,
  bad_agent: 400,
  outside_workspace: 400,
  bad_target: 400,
  symlink: 400,
  is_directory: 400,
  unauthenticated: 401,
  tool_not_allowed: 403,
  route_not_found: 404,
  not_found: 404,
  workspace_not_found: 404,
  process_not_found: 404,
  operation_not_found: 404,
  request_timeout: 408,
  busy: 409,
  process_not_running: 409,
  process_not_tty: 409,
  process_backpressure: 409,
  stdin_closed: 409,
  operation_running: 409,
  idempotency_conflict: 409,
  operation_interrupted: 409,
  body_too_large: 413,
  expectation_failed: 417,
  wrong_shard: 421,
  headers_too_large: 431,
  bad_url: 400,
  bad_name: 400,
  bad_env: 400,
  host_not_allowed: 403,
  protected_branch: 403,
  wrong_branch: 403,
  no_project: 404,
  no_worktree: 404,
  exists: 409,
  exec_failed: 500,
  limit_failed: 500,
  kill_incomplete: 500,
  workspace_broken: 500,
  file_failed: 500,
  write_failed: 500,
  reset_failed: 500,
  usage_failed: 500,
  internal: 500,
  uncertain: 502,
  worker_unavailable: 503,
  ledger_unavailable: 503,
  overloaded: 503,
  draining: 503,
  disk_quota: 507,
};

describe('the closed list of errors', () => {
  it('has the codes and statuses that are restated here', () => {
    expect(Object.fromEntries(errorCodes.map((code) => [code, errors[code].status]))).toStrictEqual(restated);
    expect([...errorCodes].sort()).toStrictEqual(Object.keys(errors).sort());
  });

  it.each(errorCodes)('%s is a word, with a status for errors and one fixed sentence', (code) => {
    const row = errorRow(code);
    expect(row).toBe(errors[code]);
    expect(code).toMatch(/^[a-z]+(_[a-z]+)*$/);
    expect(row.status).toBeGreaterThanOrEqual(400);
    expect(row.status).toBeLessThan(600);
    expect(row.text).toMatch(/^[A-Z][^\n]*\.$/);
    expect(row.text).not.toMatch(/[{}$%`]|undefined|null|NaN|\. [A-Z]/);
    expect(row.text.length).toBeLessThanOrEqual(200);
  });

  it('puts the blame for its own failures on nobody who asks', () => {
    for (const code of errorCodes) {
      const { status, blame } = errorRow(code);
      if (status >= 500) expect(['operator', 'service', 'tenant'], code).toContain(blame);
      else expect(['caller', 'tenant'], code).toContain(blame);
    }
  });

  it('advises to send again only what certainly had no effect, and a reset, which goes on', () => {
    const later = errorCodes.filter((code) => errors[code].retry === 'later').sort();
    expect(later).toStrictEqual(
      [
        'busy',
        'draining',
        'ledger_unavailable',
        'limit_failed',
        'operation_running',
        'overloaded',
        'process_backpressure',
        'request_timeout',
        'reset_failed',
        'worker_unavailable',
        'write_failed',
        'usage_failed',
      ].sort(),
    );
    const ask = errorCodes.filter((code) => errors[code].retry === 'ask').sort();
    expect(ask).toStrictEqual(['internal', 'kill_incomplete', 'uncertain']);
  });

  it('has details of a closed shape where there are any', () => {
    const operationId = '01890a5d-ac96-7cc0-8000-000000000000';
    const shapes: Partial<Record<ErrorCode, object>> = {
      busy: { action: 'exec', operationId },
      exec_failed: { step: 'exec', errno: 'ENOENT' },
      limit_failed: { step: 'rlimit', errno: 'EPERM' },
      operation_running: { operationId },
      idempotency_conflict: { operationId },
      operation_interrupted: { operationId, state: 'interrupted', outcome: 'killed_link_lost' },
    };
    const withDetails = errorCodes.filter((code) => errorRow(code).details !== undefined).sort();
    expect(withDetails).toStrictEqual(Object.keys(shapes).sort());
    for (const code of withDetails) {
      const schema = errorRow(code).details;
      const good = shapes[code];
      expect(schema?.safeParse(good).success, code).toBe(true);
      expect(schema?.safeParse({ ...good, path: '/x' }).success, code).toBe(false);
      for (const field of Object.keys(good ?? {}))
        expect(schema?.safeParse({ ...good, [field]: 'x'.repeat(65) }).success, `${code}.${field}`).toBe(false);
    }
  });
});

describe('a refusal', () => {
  it('says the fixed sentence unless it is given another', () => {
    expect(new Refusal('busy').message).toBe(errors.busy.text);
    expect(new Refusal('bad_request', undefined, 'The field "x" is missing.').message).toBe(
      'The field "x" is missing.',
    );
  });

  it('is an error with a code and details', () => {
    const details = { step: 'exec', errno: 'ENOENT' };
    const refusal = new Refusal('exec_failed', details);
    expect(refusal).toBeInstanceOf(Error);
    expect(refusal).toMatchObject({ name: 'Refusal', code: 'exec_failed', details });
  });
});
