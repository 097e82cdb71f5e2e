import { afterAll, beforeAll, expect, test } from 'vitest';
import { MiB, memoryOf } from '../../support/memory.ts';
import { Service } from '../../support/service.ts';
import { systemTools } from '../../support/user.ts';

const user = 100_300;
const cap = 1_000;
let service: Service;

beforeAll(async () => {
  const settings = { ...systemTools('sh', 'printf', 'head', 'true', 'seq'), RUNNER_MAX_OUTPUT_BYTES: String(cap) };
  service = await Service.start({ settings });
});
afterAll(() => service.stop());

const bodyOf = async (tool: string, args: readonly string[] = []) => {
  const { status, body } = await service.exec(user, tool, args);
  expect(status, JSON.stringify(body)).toBe(200);
  return body;
};
const shell = (script: string) => bodyOf('sh', ['-c', script]);

test('the answer has exactly the promised fields', async () => {
  const body = await bodyOf('true');
  const fields = ['durationMs', 'exitCode', 'operationId', 'signal', 'stderr', 'stdout', 'timedOut', 'truncated'];
  expect(Object.keys(body).sort()).toEqual(fields);
  expect(body).toMatchObject({ exitCode: 0, stdout: '', stderr: '', truncated: false, timedOut: false, signal: null });
});

test('the operation id is in the header, the body and the audit', async () => {
  const { headers, body } = await service.exec(user, 'true');
  expect(body.operationId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(headers['operation-id']).toBe(body.operationId);
  const line = await service.audited(({ operationId }) => operationId === body.operationId);
  const expected = { action: 'exec', user, tool: 'true', args: 0, exit: 0, status: 'ok' };
  expect(line).toMatchObject(expected);
  expect(Object.keys(line).sort()).toEqual([...Object.keys(expected), 'time', 'ms', 'operationId'].sort());
});

test('exit codes are the tool’s own', async () => {
  for (const code of [0, 1, 2, 127, 128, 255]) {
    expect(await shell(`exit ${code}`)).toMatchObject({ exitCode: code, signal: null, timedOut: false });
  }
});

test('a tool that a signal ended has exit code -1 and the signal’s name', async () => {
  for (const signal of ['KILL', 'SEGV', 'TERM', 'ABRT', 'HUP', 'PIPE', 'USR1'])
    expect(await shell(`kill -${signal} $$`), signal).toMatchObject({
      exitCode: -1,
      signal: `SIG${signal}`,
      timedOut: false,
    });
  const line = await service.audited(({ exit }) => exit === -1);
  expect(line).toMatchObject({ action: 'exec', status: 'ok', user });
});

test('standard output and standard error are kept apart and in order', async () => {
  const body = await shell('echo a; echo 1 >&2; echo b; echo 2 >&2');
  expect(body).toMatchObject({ stdout: 'a\nb\n', stderr: '1\n2\n' });
});

test('of each stream the first bytes are kept, exactly as many as configured', async () => {
  const all = Array.from({ length: 500 }, (_, index) => `${index + 1}\n`).join('');
  expect(all.length).toBeGreaterThan(cap);
  expect(await bodyOf('seq', ['500'])).toMatchObject({ stdout: all.slice(0, cap), stderr: '', truncated: true });
  expect(await shell('seq 500 >&2; echo short')).toMatchObject({
    stdout: 'short\n',
    stderr: all.slice(0, cap),
    truncated: true,
  });
});

test('output of exactly the limit is whole; one byte more is cut', async () => {
  expect(await bodyOf('printf', ['%1000d', '0'])).toMatchObject({ stdout: '0'.padStart(cap), truncated: false });
  expect(await bodyOf('printf', ['%1001d', '0'])).toMatchObject({ stdout: ' '.repeat(cap), truncated: true });
});

test('the cut never splits a character', async () => {
  const filler = 'x'.repeat(cap - 2);
  for (const [character, kept] of [
    ['é', true],
    ['€', false],
    ['𝄞', false],
  ] as const) {
    const body = await bodyOf('printf', ['%s', `${filler}${character}tail`]);
    expect(body, character).toMatchObject({ stdout: kept ? `${filler}${character}` : filler, truncated: true });
  }
});

test('bytes that are not UTF-8 become U+FFFD, also at the end of output that was not cut', async () => {
  // Each maximal well-formed part of a sequence is one replacement (Unicode, 3.9).
  expect((await shell("printf 'a\\377b\\303\\050c\\342\\202'")).stdout).toBe('a\uFFFDb\uFFFD(c\uFFFD');
  expect((await shell("printf '\\355\\240\\200|\\300\\200'")).stdout).toBe('\uFFFD\uFFFD\uFFFD|\uFFFD\uFFFD');
});

test('NUL, control characters, a byte order mark and text beyond the first plane survive', async () => {
  const { stdout } = await shell("printf 'a\\000b\\001\\033\\177\\r\\n\\357\\273\\277😀한글'");
  expect(stdout).toBe('a\0b\u0001\u001b\u007f\r\n\uFEFF😀한글');
});

test('100 MB of output are read and dropped, the tool ends by itself, and the service’s memory does not grow by it', async () => {
  const bytes = 100 * MiB;
  const measured = () => [memoryOf(service.part('worker').pid), memoryOf(service.part('gateway').pid)] as const;
  const before = measured();
  const body = await shell(`head -c ${bytes} /dev/zero; echo done >&2`);
  expect(body).toMatchObject({ exitCode: 0, stdout: '\0'.repeat(cap), stderr: 'done\n', truncated: true });
  for (const [index, after] of measured().entries()) expect(after - (before[index] ?? 0)).toBeLessThan(32 * MiB);
});

test('a tool that closes its output, or writes to only one, is waited for', async () => {
  expect(await shell('exec 1>&-; echo err >&2; exec 2>&-; exit 3')).toMatchObject({
    exitCode: 3,
    stdout: '',
    stderr: 'err\n',
  });
});

test('a tool can open its output by name', async () => {
  expect(await shell('echo one >/dev/stdout; echo two >/dev/stderr')).toMatchObject({
    stdout: 'one\n',
    stderr: 'two\n',
  });
});

test('durationMs is the time the tool took', async () => {
  const started = performance.now();
  const body = await shell('sleep 0.3');
  const elapsed = performance.now() - started;
  expect(body.durationMs).toBeGreaterThanOrEqual(300);
  expect(body.durationMs).toBeLessThanOrEqual(Math.ceil(elapsed));
});
