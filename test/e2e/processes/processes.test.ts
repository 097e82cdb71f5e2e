import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { TestProcess } from '../../support/process-client.ts';
import { processesOf } from '../../support/processes.ts';
import { Service } from '../../support/service.ts';
import { eventually } from '../../support/wait.ts';

let service: Service;
beforeAll(async () => {
  service = await Service.start({
    settings: {
      RUNNER_TOOLS: 'sh=/bin/sh,cat=/bin/cat',
      RUNNER_PROCESS_RETAIN_BYTES: '65536',
      RUNNER_PROCESS_TIMEOUT_SEC: '20',
      RUNNER_PROCESS_RETAIN_SEC: '3',
      RUNNER_MAX_PROCESS_HANDLES: '8',
    },
  });
});
afterAll(async () => await service.stop());

let lastUser = 3_000;
const newUser = (): number => lastUser++;
const uidOf = (user: number): number => 20_000 + user;
const start = (tool: string, args: readonly string[], tty = false, user = newUser()): Promise<TestProcess> =>
  TestProcess.start(service.client, user, tool, args, tty);
const shell = (script: string, tty = false, user = newUser()): Promise<TestProcess> =>
  start('sh', ['-c', script], tty, user);
const refused = async (process: TestProcess, verb: string, more: Readonly<Record<string, unknown>>) => {
  const { status, body } = await process.ask(verb, more);
  return `${status} ${body.error}`;
};

describe('a process', () => {
  test('is started, read, and told how it ended', async () => {
    const user = newUser();
    const answer = await service.client.post('/v1/process/start', {
      workspaceId: String(user),
      tool: 'sh',
      args: ['-c', 'echo out; echo err >&2; exit 3'],
    });
    expect(answer.status).toBe(200);
    expect(Object.keys(JSON.parse(answer.text) as object).sort()).toEqual(['dispatchStatus', 'processId']);
    expect(answer.headers['operation-id']).toMatch(/^[0-9a-f-]{36}$/);
    const { processId } = JSON.parse(answer.text) as { processId: string };
    const process = new TestProcess(service.client, processId);
    const termination = await process.ended();
    expect(termination).toMatchObject({ reason: 'exit', exitCode: 3, signal: null });
    expect(termination.maxRssBytes).toBeGreaterThan(0);
    expect(process.output).toBe('out\n');
    expect((await process.read({ stream: 'stderr' })).data).toBe('err\n');
    expect(processesOf(uidOf(user))).toEqual([]);
    await service.audited(({ action, exit }) => action === 'process.exit' && exit === 3);
    // One line for the start, one for the exit; polls have none.
    expect(service.audit.map(({ action }) => action).filter((action) => action.startsWith('process.'))).toEqual([
      'process.start',
      'process.exit',
    ]);
  });

  test('holds its user’s lock until it is gone, and says so', async () => {
    const user = newUser();
    const process = await shell('echo ready; sleep 1000', false, user);
    await process.said('ready');
    const busy = await service.exec(user, 'sh', ['-c', 'exit 0']);
    expect(busy.body).toMatchObject({
      error: 'busy',
      details: { action: 'process.start', processId: process.processId },
    });
    expect((await process.ask('terminate')).body).toMatchObject({
      termination: { reason: 'terminated', signal: 'SIGTERM' },
    });
    expect(processesOf(uidOf(user))).toEqual([]);
    expect((await service.exec(user, 'sh', ['-c', 'exit 0'])).body.exitCode).toBe(0);
  });

  test('what its leader leaves behind is gone when it is told as exited', async () => {
    const user = newUser();
    const process = await shell('sleep 300 & setsid sleep 300 & exit 3', false, user);
    const { endedAt, ...how } = await process.ended();
    expect(how).toMatchObject({ reason: 'exit', exitCode: 3 });
    expect(processesOf(uidOf(user))).toEqual([]);
    expect(Date.parse(endedAt) - Date.parse((await process.status()).startedAt)).toBeLessThan(10_000);
  });

  test('that closes its output is not said to have ended', async () => {
    const process = await shell('echo last; exec >/dev/null; read line; exit 5');
    await process.said('last');
    expect(await process.read({ from: process.next, waitMs: 5_000 })).toMatchObject({ data: '', eof: true });
    expect((await process.status()).state).toBe('running');
    await process.write('go\n');
    expect(await process.ended()).toMatchObject({ exitCode: 5 });
  });

  test('characters are never split; bytes come as base64', async () => {
    const process = await shell('for b in 303 244 360 237 220 232 377 0; do printf "\\\\$b"; sleep 0.05; done');
    let text = '';
    for (let from = 0; ; ) {
      const { data, next, eof } = await process.read({ from, waitMs: 1_000 });
      text += data;
      from = next;
      if (eof) break;
    }
    expect(text).toBe('ä🐚\u{fffd}\0');
    expect((await process.read({ from: 0, maxBytes: 4 })).data).toBe('ä');
    expect((await process.read({ encoding: 'base64' })).data).toBe(
      Buffer.from([0xc3, 0xa4, 0xf0, 0x9f, 0x90, 0x9a, 0xff, 0]).toString('base64'),
    );
  });

  test('a read waits no longer than it was told', async () => {
    const process = await shell('sleep 1000');
    const asked = performance.now();
    expect(await process.read({ waitMs: 300 })).toMatchObject({ data: '', eof: false, next: 0 });
    expect(performance.now() - asked).toBeGreaterThanOrEqual(290);
    await process.ask('terminate', { signal: 'SIGKILL' });
    expect(await process.ended()).toMatchObject({ reason: 'terminated', exitCode: null, signal: 'SIGKILL' });
  });
});

describe('input', () => {
  test('is written once for one writeId; its end closes it', async () => {
    const process = await start('cat', []);
    for (let i = 0; i < 2; i++)
      expect((await process.ask('write', { data: 'one ', writeId: 'w1' })).body).toMatchObject({ written: 4 });
    await process.write(Buffer.from('two').toString('base64'), { encoding: 'base64', eof: true });
    expect(await refused(process, 'write', { data: 'x' })).toMatch(/^409 (stdin_closed|process_not_running)$/);
    expect(await process.ended()).toMatchObject({ exitCode: 0 });
    expect(process.output).toBe('one two');
    expect(await refused(process, 'write', { data: 'x' })).toBe('409 process_not_running');
  });

  test('a full pipe is told, all or nothing, and nothing hangs', async () => {
    const process = await shell('echo ready; sleep 1000');
    await process.said('ready');
    const data = 'x'.repeat(65_536);
    let answer = '';
    for (let i = 0; i < 10 && answer !== '409 process_backpressure'; i++)
      answer = await refused(process, 'write', { data });
    expect(answer).toBe('409 process_backpressure');
    await process.ask('terminate');
  });
});

describe('a terminal', () => {
  test('has a size, which can be changed', async () => {
    const process = await start('sh', ['-i'], true);
    await process.write('stty size\n');
    await process.said('24 80');
    expect((await process.ask('resize', { rows: 50, cols: 132 })).status).toBe(200);
    await process.write('stty size\n');
    await process.said('50 132');
    await process.write('', { eof: true });
    expect(await process.ended()).toMatchObject({ reason: 'exit' });
    expect(await refused(process, 'resize', { rows: 1, cols: 1 })).toBe('409 process_not_running');
  });

  test('Ctrl-C stops what is in front, and the shell goes on', async () => {
    const user = newUser();
    const sleeps = (): boolean => processesOf(uidOf(user)).some(({ command }) => command === 'sleep 1000');
    const process = await start('sh', ['-i'], true, user);
    await process.write('sleep 1000\n');
    await eventually('the sleep', sleeps);
    await process.write('\x03');
    await process.said('^C');
    await eventually('its end', () => !sleeps());
    await process.write('echo "st"ill here; exit 7\n');
    await process.said('still here');
    expect(await process.ended()).toMatchObject({ reason: 'exit', exitCode: 7 });
  });

  test('pipes have no size', async () => {
    const process = await shell('sleep 1000');
    expect(await refused(process, 'resize', { rows: 24, cols: 80 })).toBe('409 process_not_tty');
    await process.ask('terminate');
  });
});

describe('the end', () => {
  test('by one signal is answered at once; a tool that traps it leaves by itself', async () => {
    const process = await shell('trap "exit 9" INT; echo ready; while :; do sleep 0.05; done');
    await process.said('ready');
    expect((await process.ask('terminate', { signal: 'SIGINT' })).status).toBe(200);
    expect(await process.ended()).toMatchObject({ reason: 'exit', exitCode: 9 });
  });

  test('of one that is deaf to SIGTERM comes after the grace', async () => {
    const process = await shell('trap "" TERM; echo ready; while :; do sleep 0.05; done');
    await process.said('ready');
    const { body } = await process.ask('terminate');
    expect(body).toMatchObject({ termination: { reason: 'terminated', exitCode: null, signal: 'SIGKILL' } });
  });

  test('by a signal of its own is none that was asked for', async () => {
    const process = await shell('kill -SEGV $$');
    expect(await process.ended()).toMatchObject({ reason: 'signal', exitCode: null, signal: 'SIGSEGV' });
  });

  test('by the time limit says so', async () => {
    const process = await shell('sleep 1000');
    expect(await process.ended(40_000)).toMatchObject({ reason: 'timeout', exitCode: null });
  }, 50_000);

  test('a handle expires, and one of nobody’s making is not found', async () => {
    const user = newUser();
    const process = await shell('exit 0', false, user);
    await process.ended();
    await eventually('its expiry', async () => (await process.ask('status')).status === 404, 8_000);
    expect(await refused(process, 'status', {})).toBe('404 process_not_found');
    const made = new TestProcess(service.client, `${user}-${'A'.repeat(22)}`);
    for (const verb of ['status', 'read', 'terminate'])
      expect(await refused(made, verb, {})).toBe('404 process_not_found');
    expect(await refused(new TestProcess(service.client, 'x'), 'status', {})).toBe('404 process_not_found');
  });

  test('what cannot be started is told, and leaves no handle and no lock', async () => {
    const user = newUser();
    const ask = async (body: Readonly<Record<string, unknown>>) => {
      const answer = await service.client.post('/v1/process/start', { workspaceId: String(user), tool: 'sh', ...body });
      return `${answer.status} ${answer.body.error}`;
    };
    expect(await ask({ workspaceId: `${user}:missing` })).toBe('404 workspace_not_found');
    expect(await ask({ workspaceId: `${user}:../x` })).toBe('400 outside_workspace');
    expect(await ask({ workspaceId: 'nowhere' })).toBe('404 workspace_not_found');
    expect(await ask({ tool: 'ls' })).toBe('403 tool_not_allowed');
    // More often than there are handles.
    for (let i = 0; i <= 8; i++) expect(await ask({ tool: 'glab' })).toBe('500 exec_failed');
    expect(await ask({ cwd: '/' })).toBe('400 bad_request');
    const { text } = await service.client.post('/v1/process/list', { workspaceId: String(user) });
    expect(JSON.parse(text)).toEqual({ processes: [] });
    expect((await service.exec(user, 'sh', ['-c', 'exit 0'])).body.exitCode).toBe(0);
  });
});
