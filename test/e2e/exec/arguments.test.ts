import { afterAll, beforeAll, expect, test } from 'vitest';
import { Service } from '../../support/service.ts';
import { systemTools } from '../../support/user.ts';

const user = 100_400;
let service: Service;

beforeAll(async () => {
  const settings = { ...systemTools('printf', 'cat', 'true'), RUNNER_MAX_BODY_BYTES: '3000000' };
  service = await Service.start({ settings });
});
afterAll(() => service.stop());

/** The arguments as the tool got them: each is printed with a NUL behind it. */
const received = async (args: readonly string[]): Promise<string[]> => {
  const { status, body } = await service.exec(user, 'printf', ['%s\\0', ...args]);
  expect(status, JSON.stringify(body).slice(0, 300)).toBe(200);
  expect(body).toMatchObject({ exitCode: 0, stderr: '', truncated: false });
  return (body.stdout ?? '').split('\0').slice(0, -1);
};

test('arguments arrive unchanged: no shell sees them', async () => {
  const args = [
    'two words',
    '  leading and trailing  ',
    '',
    `'single' "double" \`back\``,
    `$HOME $\{PATH} $(id) \`id\``,
    'a;b|c&d>e<f',
    '*?[a-z]{1,2}~',
    '\\ \\n \\',
    'line\nbreak\r\n\ttab',
    '--flag=value',
    '-',
    '--',
    '#no comment',
    '!history',
    '%s %d',
    '\u0001\u001b[31m\u007f',
  ];
  expect(await received(args)).toEqual(args);
});

test('Unicode of every length arrives unchanged', async () => {
  const args = ['é', '한글', '€', '😀', '𝄞', 'e\u0301', '\uFEFFmark', '\u202Eright to left', '\uFFFD', '\u{10FFFF}'];
  expect(await received(args)).toEqual(args);
});

test('an argument of 100 KiB arrives whole', async () => {
  const long = 'x'.repeat(100 * 1024);
  const [argument] = await received([long]);
  expect(argument?.length).toBe(long.length);
  expect(argument === long).toBe(true);
});

test('1,000 arguments arrive, each in its place', async () => {
  const args = Array.from({ length: 1_000 }, (_, index) => `argument ${index}`);
  expect(await received(args)).toEqual(args);
});

test('10,000 arguments arrive', async () => {
  const args = Array.from({ length: 10_000 }, (_, index) => String(index));
  expect(await received(args)).toEqual(args);
});

test('the tool’s own name is the path of its program', async () => {
  const { body } = await service.exec(user, 'cat', ['/proc/self/cmdline']);
  expect(body.stdout).toBe('/bin/cat\0/proc/self/cmdline\0');
});

test('the audit counts the arguments and holds none', async () => {
  const { body } = await service.exec(user, 'true', ['first-argument', 'second-argument', 'third-argument']);
  const line = await service.audited(({ operationId }) => operationId === body.operationId);
  expect(line).toMatchObject({ args: 3 });
  expect(JSON.stringify(line)).not.toContain('-argument');
});

test('an argument longer than the kernel takes: exec_failed, and the tool has not run', async () => {
  const { status, body } = await service.exec(user, 'true', ['x'.repeat(200 * 1024)]);
  expect(status).toBe(500);
  expect(body).toMatchObject({ error: 'exec_failed', details: { step: 'exec', errno: 'E2BIG' } });
  const line = await service.audited(({ operationId }) => operationId === body.operationId);
  expect(line).toMatchObject({ status: 'error', reason: 'exec_failed', args: 1 });
});

test('more arguments in all than the kernel takes: the same', async () => {
  const args = Array.from({ length: 24 }, () => 'x'.repeat(120 * 1024));
  const { status, body } = await service.exec(user, 'true', args);
  expect(status).toBe(500);
  expect(body).toMatchObject({ error: 'exec_failed', details: { step: 'exec', errno: 'E2BIG' } });
  expect((await service.exec(user, 'true')).status).toBe(200);
});

test('absent, null and empty arguments are the same', async () => {
  for (const args of [undefined, null, []]) {
    const { status, body } = await service.client.post('/v1/exec', {
      user,
      tool: 'cat',
      ...(args === undefined ? {} : { args }),
    });
    expect(status).toBe(200);
    expect(body).toMatchObject({ exitCode: 0, stdout: '' });
  }
});
