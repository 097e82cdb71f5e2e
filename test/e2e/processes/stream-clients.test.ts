import { readdirSync, readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventStreamsMax, requestsInFlightMax } from '../../../protocol/limits.ts';
import { eventsOf, openEvents, textOf } from '../../support/event-stream.ts';
import { MiB, memoryOf } from '../../support/memory.ts';
import { TestProcess } from '../../support/process-client.ts';
import { RawConnection, rawRequest } from '../../support/raw-http.ts';
import { Service, token } from '../../support/service.ts';
import { systemTools } from '../../support/user.ts';
import { eventually } from '../../support/wait.ts';

let service: Service;
beforeAll(async () => {
  service = await Service.start({ settings: systemTools('sh', 'true') });
});
afterAll(() => service.stop());

let lastUser = 3_950;
const shell = (script: string): Promise<TestProcess> =>
  TestProcess.start(service.client, lastUser++, 'sh', ['-c', script]);
const parts = ['gateway', 'worker'] as const;
const pids = (): readonly number[] => parts.map((part) => service.part(part).pid);
const descriptorsOf = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length;
/** Time on a processor, ms (proc(5), utime and stime in hundredths of a second). */
const cpuOf = (pid: number): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? [];
  return 10 * (Number(fields[11]) + Number(fields[12]));
};
const serves = async (): Promise<void> => {
  expect((await service.exec(lastUser++, 'true')).body).toMatchObject({ exitCode: 0 });
};

/** Opens streams, a few at a time: more than the listener's backlog at once would wait for the kernel's next try. */
const openMany = async (of: TestProcess, count: number): Promise<IncomingMessage[]> => {
  const all: IncomingMessage[] = [];
  while (all.length < count) {
    const some = Array.from({ length: Math.min(64, count - all.length) }, () => openEvents(service, of));
    all.push(...(await Promise.all(some)));
  }
  return all;
};
const close = (streams: readonly IncomingMessage[]): void => {
  for (const stream of streams) stream.destroy();
};

test('100 idle streams take little memory and no processor, and each is told the end', async () => {
  const quiet = await shell('read line; echo $line; exit 5');
  close(await openMany(quiet, 100));
  await serves();
  const [gateway = 0, worker = 0] = pids();
  const before = [memoryOf(gateway), memoryOf(worker)];
  const streams = await openMany(quiet, 100);
  expect(streams.map(({ statusCode }) => statusCode)).toEqual(streams.map(() => 200));
  const isIdle = async () => {
    const busyBefore = [cpuOf(gateway), cpuOf(worker)];
    await delay(1_000);
    return [gateway, worker].every((pid, index) => cpuOf(pid) - (busyBefore[index] ?? 0) < 100);
  };
  // Not the first one: what the opening has left to do comes first.
  await eventually('a second in which they take no processor', isIdle, 30_000);
  for (const [index, pid] of [gateway, worker].entries())
    expect(memoryOf(pid) - (before[index] ?? 0), parts[index]).toBeLessThan(16 * MiB);
  const told = streams.map((stream) => eventsOf(stream));
  await quiet.write('told\n');
  for (const events of await Promise.all(told)) {
    expect(textOf(events, 'stdout')).toBe('told\n');
    expect(events.at(-1)).toMatchObject({ event: 'exit', data: { termination: { exitCode: 5 } } });
  }
});

test('a client that comes late is told all that is kept before the end', async () => {
  const process = await shell('yes | head -c 1000000; exit 3');
  await process.ended();
  const events = await eventsOf(await openEvents(service, process));
  expect(textOf(events, 'stdout')).toBe('y\n'.repeat(500_000));
  expect(events.at(-1)).toMatchObject({ event: 'exit', id: '1000000.0', data: { termination: { exitCode: 3 } } });
});

test('one more stream than there may be is refused; one that ends makes room', async () => {
  const quiet = await shell('sleep 1000');
  const streams = await openMany(quiet, eventStreamsMax);
  expect(streams.filter(({ statusCode }) => statusCode !== 200)).toEqual([]);
  const refused = await openEvents(service, quiet);
  expect(refused.statusCode).toBe(503);
  expect(JSON.parse((await refused.setEncoding('utf8').toArray()).join(''))).toMatchObject({ error: 'overloaded' });
  await service.audited(
    ({ action, status, reason }) => action === 'process.stream' && status === 'denied' && reason === 'overloaded',
  );
  await serves();
  streams.pop()?.destroy();
  const another = await eventually('room for one', async () => {
    const stream = await openEvents(service, quiet);
    return stream.statusCode === 200 ? stream : void stream.resume();
  });
  close([...streams, another]);
  await quiet.ask('terminate', { signal: 'SIGKILL' });
});

test('clients that break off, more of them than there may be at once, leave nothing behind', async () => {
  const quiet = await shell('sleep 1000');
  const talking = await shell('while :; do echo talking; sleep 0.01; done');
  await serves();
  const [gateway = 0, worker = 0] = pids();
  const before = [descriptorsOf(gateway), descriptorsOf(worker)];
  const memoryBefore = [memoryOf(gateway), memoryOf(worker)];
  const backAgain = async () => {
    for (const [index, pid] of [gateway, worker].entries())
      await eventually(`the ${parts[index]}'s descriptors`, () => descriptorsOf(pid) <= (before[index] ?? 0));
  };
  // Each is a request in flight as well: what was not given up would fill the link.
  for (let broken = 0; broken <= requestsInFlightMax; broken += 150) {
    const streams = [...(await openMany(quiet, 100)), ...(await openMany(talking, 50))];
    expect(streams.filter(({ statusCode }) => statusCode !== 200)).toEqual([]);
    for (const stream of streams.slice(100)) expect((await eventsOf(stream, () => true)).length).toBe(1);
    close(streams);
    await backAgain();
  }
  const stream = await openEvents(service, quiet);
  expect(stream.statusCode).toBe(200);
  close([stream]);
  await serves();
  await backAgain();
  for (const [index, pid] of [gateway, worker].entries())
    expect(memoryOf(pid) - (memoryBefore[index] ?? 0), parts[index]).toBeLessThan(32 * MiB);
  for (const process of [quiet, talking]) await process.ask('terminate', { signal: 'SIGKILL' });
});

/** 50 MB while something follows it: the most that gateway and worker took meanwhile, bytes. */
const mostWhileWriting = async (follow: (process: TestProcess) => Promise<unknown>): Promise<readonly number[]> => {
  const process = await shell(
    'read line; i=0; while [ $i -lt 20 ]; do yes | head -c 2500000; i=$((i + 1)); sleep 0.01; done; exit 6',
  );
  await follow(process);
  await process.write('\n');
  const all = pids();
  let [most, state] = [all.map(() => 0), 'running'];
  for (; state === 'running'; { state } = await process.status())
    most = all.map((pid, index) => Math.max(most[index] ?? 0, memoryOf(pid)));
  expect((await process.status()).termination).toMatchObject({ reason: 'exit', exitCode: 6 });
  expect((await process.read()).next).toBe(50_000_000);
  return most;
};

test('a client that never reads holds nothing up, and takes little memory', async () => {
  // What a client that reads costs is the measure: what it was told is for the collector to find.
  let told: Promise<unknown> | undefined;
  const usual = await mostWhileWriting(async (process) => {
    told = eventsOf(await openEvents(service, process), ({ event }) => event === 'exit');
  });
  await told;
  await serves();
  const [gateway = 0] = pids();
  const descriptors = descriptorsOf(gateway);
  const deaf = new RawConnection(service.port);
  deaf.socket.pause();
  const most = await mostWhileWriting(async ({ processId }) => {
    const line = `GET /v1/process/stream?processId=${processId} HTTP/1.1`;
    deaf.say(rawRequest(line, ['Host: x', `Authorization: Bearer ${token}`]));
    await eventually('it is connected', () => descriptorsOf(gateway) > descriptors);
  });
  for (const [index, part] of parts.entries()) expect(most[index], part).toBeLessThan((usual[index] ?? 0) + 24 * MiB);
  expect(descriptorsOf(gateway), 'it is connected still').toBeGreaterThan(descriptors);
  deaf.destroy();
  await eventually('its descriptor', () => descriptorsOf(gateway) <= descriptors);
  await serves();
}, 120_000);
