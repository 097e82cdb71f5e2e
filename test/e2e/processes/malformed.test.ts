import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { TestProcess } from '../../support/process-client.ts';
import { Service } from '../../support/service.ts';
import { systemTools } from '../../support/user.ts';

let service: Service;
let process: TestProcess;
beforeAll(async () => {
  service = await Service.start({ settings: systemTools('sh') });
  process = await TestProcess.start(service.client, 3_050, 'sh', ['-c', 'sleep 1000'], true);
});
afterAll(() => service.stop());

const refused = async (verb: string, more: Readonly<Record<string, unknown>>): Promise<string> => {
  const { status, body } = await process.ask(verb, more);
  return `${status} ${body.error}`;
};

test.each([0, -1, 65_536, '80', 1.5, null, true, [80], 1e21])('%j rows or columns are none', async (side) => {
  expect(await refused('resize', { rows: side, cols: 80 })).toBe('400 bad_request');
  expect(await refused('resize', { rows: 24, cols: side })).toBe('400 bad_request');
});

test.each([1, 65_535])('%i rows and columns are some', async (side) => {
  expect((await process.ask('resize', { rows: side, cols: side })).status).toBe(200);
});

test.each([-1, 0.5, '0', '', true, [0], 2 ** 53, 1e300])('%j is no offset', async (from) => {
  expect(await refused('read', { from })).toBe('400 bad_request');
});

test.each([
  [{ maxBytes: 3 }],
  [{ maxBytes: 1_048_577 }],
  [{ waitMs: 30_001 }],
  [{ waitMs: -1 }],
  [{ stream: 'stdin' }],
  [{ encoding: 'hex' }],
])('%j is nothing to read', async (more) => {
  expect(await refused('read', more)).toBe('400 bad_request');
});

test.each([
  [{ data: 'x'.repeat(65_537) }],
  [{ data: Buffer.alloc(65_537).toString('base64'), encoding: 'base64' }],
  [{ data: '%', encoding: 'base64' }],
  [{ data: 'eA', encoding: 'base64' }],
  [{ data: 'x', encoding: 'latin1' }],
  [{ data: 'x', writeId: 'a b' }],
  [{ data: 'x', writeId: '' }],
  [{ data: 'x', eof: 'yes' }],
  [{ data: 1 }],
  [{}],
])('%#: is nothing to write', async (more) => {
  expect(await refused('write', more)).toBe('400 bad_request');
});

test.each(['SIGSTOP', 'SIGUSR1', 'TERM', '', 9])('%j is no signal', async (signal) => {
  expect(await refused('terminate', { signal })).toBe('400 bad_request');
  expect((await process.status()).state).toBe('running');
});

test('what is no handle, or nobody’s, names no process', async () => {
  const { processId } = process;
  const [user, secret = ''] = processId.split(/-(.*)/s);
  const near = [
    `${Number(user) + 1}-${secret}`,
    secret,
    `-${secret}`,
    `0${processId}`,
    `${processId}A`,
    processId.slice(0, -1),
    `${processId}\n`,
    processId.replace('-', '_'),
    `${user}-${secret.slice(1)}${secret.slice(0, 1) === 'A' ? 'B' : 'A'}`,
  ];
  const garbage = fc.sample(fc.oneof(fc.string({ maxLength: 300 }), fc.jsonValue()), { seed: 5, numRuns: 100 });
  for (const value of [...near, ...garbage])
    for (const [verb, more] of [
      ['status', {}],
      ['read', {}],
      ['write', { data: 'x' }],
      ['resize', { rows: 1, cols: 1 }],
      ['terminate', {}],
    ] as const) {
      const isText = typeof value === 'string' && value.length <= 256;
      const answer = await refused(verb, { ...more, processId: value });
      expect(answer, JSON.stringify(value)).toMatch(isText ? /^404 process_not_found$/ : /^400 bad_request$/);
    }
  expect((await process.status()).state).toBe('running');
});
