import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { MiB, memoryOf } from '../../support/memory.ts';
import { TestProcess } from '../../support/process-client.ts';
import { Service } from '../../support/service.ts';
import { systemTools } from '../../support/user.ts';
import { eventually } from '../../support/wait.ts';

const windowBytes = 65_536;
const allBytes = 5_000_000;
let service: Service;
beforeAll(async () => {
  service = await Service.start({
    settings: { ...systemTools('sh', 'head'), RUNNER_PROCESS_RETAIN_BYTES: String(windowBytes) },
  });
});
afterAll(() => service.stop());

let lastUser = 3_700;
const newUser = (): number => lastUser++;
const shell = (script: string): Promise<TestProcess> =>
  TestProcess.start(service.client, newUser(), 'sh', ['-c', script]);
const exited = (process: TestProcess) =>
  eventually('its end', async () => (await process.status()).state === 'exited', 20_000);

test('200 times, on pipes and on terminals: all that it wrote can be read when it is told as exited', async () => {
  const one = async (user: number, tty: boolean): Promise<void> => {
    const process = await TestProcess.start(service.client, user, 'head', ['-c', '60000', '/dev/zero'], tty);
    await exited(process);
    const { data, next, eof, outputLost } = await process.read({ from: 0, encoding: 'base64' });
    expect({ next, eof, outputLost }).toEqual({ next: 60_000, eof: true, outputLost: false });
    expect(Buffer.from(data, 'base64').equals(Buffer.alloc(60_000))).toBe(true);
  };
  await Promise.all(
    Array.from({ length: 4 }, async () => {
      const user = newUser();
      for (let i = 0; i < 50; i += 1) await one(user, i % 2 === 1);
    }),
  );
}, 120_000);

/** Every 8 bytes are the number of these 8: what stands at an offset tells the offset. */
const expected = Buffer.from(
  Array.from({ length: allBytes / 8 }, (_, i) => `${String(i).padStart(7, '0')}\n`).join(''),
);
/** Writes all of it, so many bytes at a time, and does something after each. */
const numbers = (bytes: number, then: string): string =>
  `i=0; while [ $i -lt ${allBytes / bytes} ]; do
     seq -f %07.0f $((i * ${bytes / 8})) $(((i + 1) * ${bytes / 8} - 1)); i=$((i + 1)); ${then}
   done; exit 4`;

test('5 MB to a reader that keeps up: polled by `next`, no byte is missing and none comes twice', async () => {
  // It writes on when it was read: the window holds a piece at least.
  const process = await shell(numbers(50_000, 'read line'));
  const pieces: Buffer[] = [];
  let next = 0;
  for (let told = 50_000; next < allBytes; ) {
    const read = await process.read({ from: next, waitMs: 5_000, maxBytes: 30_000 });
    expect(read).toMatchObject({
      from: next,
      next: next + Buffer.byteLength(read.data),
      outputLost: false,
      eof: false,
    });
    expect(read.retainedFrom).toBeLessThanOrEqual(Math.max(0, told - windowBytes));
    pieces.push(Buffer.from(read.data));
    next = read.next;
    if (next === told) {
      await process.write('\n');
      told += 50_000;
    }
  }
  expect(Buffer.concat(pieces).equals(expected)).toBe(true);
  expect(await process.read({ from: next, waitMs: 5_000 })).toMatchObject({ data: '', next: allBytes, eof: true });
  process.next = next;
  expect(await process.ended()).toMatchObject({ exitCode: 4 });
}, 120_000);

test('5 MB to a reader that sleeps: offsets are exact, and what has passed is told as lost', async () => {
  const process = await shell(numbers(100_000, 'sleep 0.02'));
  let [next, lost, kept] = [0, 0, 0];
  for (let eof = false; !eof; await delay(200)) {
    const read = await process.read({ from: next, waitMs: 5_000 });
    expect(read.data).toBe(expected.toString('latin1', read.from, read.next));
    expect(read.outputLost).toBe(read.from > next);
    if (read.outputLost) expect(read.from).toBe(read.retainedFrom);
    else expect(read.from).toBe(next);
    lost += read.from - next;
    kept += read.data.length;
    ({ next, eof } = read);
  }
  expect([next, lost + kept]).toEqual([allBytes, allBytes]);
  expect(lost).toBeGreaterThan(0);
  expect(kept).toBeGreaterThan(windowBytes);
  process.next = next;
  expect(await process.ended()).toMatchObject({ exitCode: 4 });
  // The window is full to its size, and holds the newest.
  expect(await process.read({ from: 0 })).toMatchObject({ from: allBytes - windowBytes, next: allBytes });
  const beyond = await process.ask('read', { from: allBytes + 1 });
  expect([beyond.status, beyond.body.error]).toEqual([400, 'bad_request']);
}, 120_000);

test('what nobody reads takes no memory and holds nobody up', async () => {
  const worker = service.part('worker').pid;
  /** The most that the worker took while 100 MB were written. */
  const mostWhileWriting = async (): Promise<number> => {
    const process = await shell('read line; head -c 100000000 /dev/zero');
    await process.write('\n');
    let most = 0;
    await eventually(
      'its end',
      async () => {
        most = Math.max(most, memoryOf(worker));
        return (await process.status()).state === 'exited';
      },
      30_000,
    );
    expect(await process.read()).toMatchObject({ from: 100_000_000 - windowBytes, next: 100_000_000, eof: true });
    return most;
  };
  const first = await mostWhileWriting();
  for (let round = 0; round < 2; round += 1) expect(await mostWhileWriting()).toBeLessThan(first + 16 * MiB);
}, 120_000);
