import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { errors } from '../../../protocol/errors.ts';
import { commonErrors, commonMutationErrors, errorsOf, type Operation } from '../../../protocol/operation.ts';
import { operationNames, operations } from '../../../protocol/operations/index.ts';
import { restatedRepositories } from './support/restated-repositories.ts';

/** The whole table by hand. A row that is new, gone, moved or no longer a mutation has to be changed here too. */
const restated = {
  exec: {
    route: '/v1/exec',
    effect: 'mutate',
    audit: 'exec',
    streams: ['stdout', 'stderr'],
    secrets: ['args', 'dir', 'env', 'agent'],
    params: ['agent', 'args', 'dir', 'env', 'tool', 'user'],
    errors: [
      'bad_target',
      'busy',
      'disk_quota',
      'exec_failed',
      'kill_incomplete',
      'limit_failed',
      'not_found',
      'outside_workspace',
      'tool_not_allowed',
      'uncertain',
      'usage_failed',
      'worker_unavailable',
      'workspace_broken',
    ],
  },
  ...restatedRepositories,
  'process.start': {
    route: '/v1/process/start',
    effect: 'mutate',
    audit: 'process.start',
    streams: [],
    secrets: ['args', 'workspaceId'],
    params: ['args', 'tool', 'tty', 'workspaceId'],
    errors: [
      'bad_target',
      'busy',
      'disk_quota',
      'exec_failed',
      'kill_incomplete',
      'limit_failed',
      'outside_workspace',
      'tool_not_allowed',
      'uncertain',
      'usage_failed',
      'worker_unavailable',
      'workspace_broken',
      'workspace_not_found',
    ],
  },
  'process.status': {
    route: '/v1/process/status',
    effect: 'read',
    audit: 'process.status',
    streams: [],
    secrets: [],
    params: ['processId'],
    errors: ['process_not_found'],
  },
  'process.read': {
    route: '/v1/process/read',
    effect: 'read',
    audit: 'process.read',
    streams: [],
    secrets: [],
    params: ['encoding', 'from', 'maxBytes', 'processId', 'stream', 'waitMs'],
    errors: ['bad_request', 'process_not_found'],
  },
  'process.write': {
    route: '/v1/process/write',
    effect: 'mutate',
    audit: 'process.write',
    streams: [],
    secrets: ['data', 'writeId'],
    params: ['data', 'encoding', 'eof', 'processId', 'writeId'],
    errors: ['process_backpressure', 'process_not_found', 'process_not_running', 'stdin_closed', 'uncertain'],
  },
  'process.resize': {
    route: '/v1/process/resize',
    effect: 'mutate',
    audit: 'process.resize',
    streams: [],
    secrets: [],
    params: ['cols', 'processId', 'rows'],
    errors: ['process_not_found', 'process_not_running', 'process_not_tty', 'uncertain'],
  },
  'process.terminate': {
    route: '/v1/process/terminate',
    effect: 'mutate',
    audit: 'process.terminate',
    streams: [],
    secrets: [],
    params: ['processId', 'signal'],
    errors: ['kill_incomplete', 'process_not_found', 'uncertain'],
  },
  'process.list': {
    route: '/v1/process/list',
    effect: 'read',
    audit: 'process.list',
    streams: [],
    secrets: ['workspaceId'],
    params: ['workspaceId'],
    errors: [],
  },
  'process.stream': {
    route: '/v1/process/stream',
    effect: 'read',
    audit: 'process.stream',
    streams: [],
    secrets: [],
    params: ['processId', 'stderr', 'stdout', 'waitMs'],
    errors: ['bad_request', 'process_not_found'],
  },
  'operation.status': {
    route: '/v1/operation/status',
    effect: 'read',
    audit: 'operation.status',
    streams: [],
    secrets: ['idempotencyKey'],
    params: ['idempotencyKey', 'operationId', 'user'],
    errors: ['ledger_unavailable', 'operation_not_found'],
  },
  'files.list': {
    route: '/v1/files/list',
    effect: 'read',
    audit: 'files.list',
    streams: [],
    secrets: ['path'],
    params: ['path', 'user'],
    errors: [
      'bad_target',
      'file_failed',
      'not_found',
      'outside_workspace',
      'symlink',
      'worker_unavailable',
      'workspace_broken',
    ],
  },
  'files.read': {
    route: '/v1/files/read',
    effect: 'read',
    audit: 'files.read',
    streams: [],
    secrets: ['path'],
    params: ['path', 'user'],
    errors: [
      'bad_target',
      'file_failed',
      'is_directory',
      'not_found',
      'outside_workspace',
      'symlink',
      'worker_unavailable',
      'workspace_broken',
    ],
  },
  'files.write': {
    route: '/v1/files/write',
    effect: 'mutate',
    audit: 'files.write',
    streams: [],
    secrets: ['path', 'content'],
    params: ['content', 'path', 'user'],
    errors: [
      'bad_request',
      'bad_target',
      'busy',
      'disk_quota',
      'is_directory',
      'not_found',
      'outside_workspace',
      'symlink',
      'uncertain',
      'usage_failed',
      'worker_unavailable',
      'workspace_broken',
      'write_failed',
    ],
  },
  'files.delete': {
    route: '/v1/files/delete',
    effect: 'mutate',
    audit: 'files.delete',
    streams: [],
    secrets: ['path'],
    params: ['path', 'user'],
    errors: [
      'bad_target',
      'busy',
      'file_failed',
      'not_found',
      'outside_workspace',
      'uncertain',
      'worker_unavailable',
      'workspace_broken',
    ],
  },
  'workspace.reset': {
    route: '/v1/workspace/reset',
    effect: 'mutate',
    audit: 'workspace.reset',
    streams: [],
    secrets: [],
    params: ['user'],
    errors: ['busy', 'reset_failed', 'uncertain', 'worker_unavailable', 'workspace_broken'],
  },
  usage: {
    route: '/v1/usage',
    effect: 'read',
    audit: 'usage',
    streams: [],
    secrets: [],
    params: ['user'],
    errors: ['usage_failed', 'worker_unavailable', 'workspace_broken'],
  },
} as const;

const rows: readonly (readonly [string, Operation])[] = Object.entries(operations);
const fields = (row: Operation): string[] => {
  if (!(row.params instanceof z.ZodObject)) throw new Error('the parameters are no object');
  return Object.keys(row.params.shape).sort();
};

describe('the operation table', () => {
  it('has the rows that are restated here and no others', () => {
    expect([...operationNames].sort()).toStrictEqual(Object.keys(restated).sort());
    expect(Object.keys(operations).sort()).toStrictEqual(Object.keys(restated).sort());
  });

  it.each(rows)('%s is as restated', (name, row) => {
    const expected = restated[name as keyof typeof restated];
    expect({
      route: row.route,
      effect: row.effect,
      audit: row.audit,
      streams: row.streams,
      secrets: row.secrets,
      params: fields(row),
      errors: [...row.errors].sort(),
    }).toStrictEqual(expected);
  });

  it('has no two rows on one route', () => {
    const routes = rows.map(([, { route }]) => route);
    expect(new Set(routes).size).toBe(routes.length);
    for (const route of routes) expect(route).toMatch(/^\/v1(\/[a-z][a-z-]*)+$/);
  });
});

describe.each(rows)('the row %s', (_name, row) => {
  it('names only codes that exist, each once, none that every operation has anyway', () => {
    const all = errorsOf(row);
    for (const code of all) expect(errors).toHaveProperty(code);
    expect(new Set(all).size).toBe(all.length);
  });

  it('can be uncertain exactly if it mutates, and is audited then', () => {
    expect(row.errors.includes('uncertain')).toBe(row.effect === 'mutate');
    if (row.effect === 'mutate') expect(row.audit).toMatch(/^[a-z][a-z_.]*$/);
  });

  it('has secrets that are fields of its parameters', () => {
    for (const secret of row.secrets) expect(fields(row)).toContain(secret);
  });

  it('has streams that are not fields of its result too', () => {
    if (!(row.result instanceof z.ZodObject)) throw new Error('the result is no object');
    for (const stream of row.streams) expect(Object.keys(row.result.shape)).not.toContain(stream);
  });

  it('says what runs with which rights', () => {
    expect(row.asRoot).not.toBe('');
    expect(row.asUser).not.toBe('');
  });

  it('takes no field that is not in it', () => {
    const outcome = row.params.safeParse({ surely_unknown: 1 });
    expect(outcome.error?.issues.map(({ code }) => code)).toContain('unrecognized_keys');
  });
});

describe('the errors that every operation can have', () => {
  it('are the restated ones', () => {
    expect([...commonErrors].sort()).toStrictEqual(['draining', 'internal', 'overloaded', 'wrong_shard']);
    expect([...commonMutationErrors].sort()).toStrictEqual([
      'idempotency_conflict',
      'ledger_unavailable',
      'operation_interrupted',
      'operation_running',
    ]);
  });
});
