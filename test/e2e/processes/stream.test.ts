import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventsOf, openEvents, type SentEvent, textOf } from '../../support/event-stream.ts';
import { MiB, memoryOf } from '../../support/memory.ts';
import { TestProcess } from '../../support/process-client.ts';
import { Service } from '../../support/service.ts';
import { eventually } from '../../support/wait.ts';

let service: Service;
beforeAll(async () => {
  service = await Service.start({ settings: { RUNNER_PROCESS_RETAIN_BYTES: '65536' } });
});
afterAll(async () => await service.stop());

const open = (process: TestProcess, query?: string, headers?: Readonly<Record<string, string>>) =>
  openEvents(service, process, query, headers);

test('tells output with offsets, then the exit, and ends', async () => {
  const process = await TestProcess.start(service.client, 3_500, 'sh', [
    '-c',
    'echo out; echo err >&2; sleep 0.2; printf "\\377"; exit 3',
  ]);
  const response = await open(process);
  expect(response.headers['content-type']).toMatch(/^text\/event-stream/);
  const seen = await eventsOf(response);
  expect(textOf(seen, 'stdout')).toBe('out\n\xff');
  expect(textOf(seen, 'stderr')).toBe('err\n');
  expect(seen.at(-1)).toMatchObject({
    event: 'exit',
    id: '5.4',
    data: { termination: { reason: 'exit', exitCode: 3 } },
  });
});

test('goes on from the last event’s id: nothing lost, nothing twice', async () => {
  const process = await TestProcess.start(service.client, 3_501, 'sh', [
    '-c',
    'i=0; while [ $i -lt 200 ]; do echo $i; echo e$i >&2; i=$((i+1)); sleep 0.005; done',
  ]);
  const all: SentEvent[] = [];
  for (let last: string | undefined; all.at(-1)?.event !== 'exit'; last = all.at(-1)?.id) {
    let count = 0;
    const response = await open(process, '', last === undefined ? {} : { 'last-event-id': last });
    all.push(...(await eventsOf(response, () => ++count === 7)));
  }
  const lines = Array.from({ length: 200 }, (_, i) => i);
  expect(textOf(all, 'stdout')).toBe(lines.map((i) => `${i}\n`).join(''));
  expect(textOf(all, 'stderr')).toBe(lines.map((i) => `e${i}\n`).join(''));
});

test('what is not kept any more is told as lost', async () => {
  const process = await TestProcess.start(service.client, 3_502, 'sh', ['-c', 'head -c 200000 /dev/zero']);
  await process.ended();
  const seen = await eventsOf(await open(process, '&from=0.0'));
  expect(seen[0]).toMatchObject({ event: 'lost', data: { stream: 'stdout', from: 0, to: 200_000 - 65_536 } });
  expect(textOf(seen, 'stdout').length).toBe(65_536);
  expect(seen.at(-1)?.event).toBe('exit');
});

test('a client that does not read holds nothing up and costs no memory, however much is written', async () => {
  const process = await TestProcess.start(service.client, 3_504, 'sh', ['-c', 'exec yes "a line of some length"']);
  const written = async () => (await process.read({ maxBytes: 4 })).retainedFrom;
  const passing = async (bytes: number) => {
    const wanted = (await written()) + bytes;
    await eventually('more is written', async () => (await written()) > wanted, 140_000);
  };
  const measured = () => [memoryOf(service.part('worker').pid), memoryOf(service.part('gateway').pid)] as const;
  // Node's client takes in a little, and then leaves the connection alone.
  const idle = await open(process);
  expect(idle.statusCode).toBe(200);
  await passing(100 * MiB);
  const before = measured();
  await passing(600 * MiB);
  for (const [index, after] of measured().entries()) expect(after - (before[index] ?? 0)).toBeLessThan(32 * MiB);
  idle.destroy();
  await process.ask('terminate', { signal: 'SIGKILL' });
});

test('is refused like any other request', async () => {
  const made = new TestProcess(service.client, `3503-${'A'.repeat(22)}`);
  expect((await open(made)).statusCode).toBe(404);
  const process = await TestProcess.start(service.client, 3_503, 'sh', ['-c', 'sleep 1000']);
  expect((await open(process, '', { authorization: 'Bearer wrong' })).statusCode).toBe(401);
  for (const query of ['&from=1', '&from=9.0', '&from=0.0&from=0.0', '&cwd=x', '&from=-1.0'])
    expect((await open(process, query)).statusCode, query).toBe(400);
  await process.ask('terminate');
});
