import { afterAll, beforeAll, expect, test } from 'vitest';
import { MiB, memoryOf } from '../../support/memory.ts';
import { TestProcess } from '../../support/process-client.ts';
import { Service } from '../../support/service.ts';

let service: Service;
beforeAll(async () => {
  service = await Service.start();
});
afterAll(() => service.stop());

test('a hundred and fifty readers of a MiB at once end nobody’s link, and are answered', async () => {
  const bystander = await TestProcess.start(service.client, 3_651, 'sh', ['-c', 'exec sleep 1000']);
  const written = await TestProcess.start(service.client, 3_652, 'sh', [
    '-c',
    'head -c 2097152 /dev/zero | tr "\\0" a',
  ]);
  await written.ended(30_000);
  const worker = service.part('worker').pid;
  const before = memoryOf(worker);
  let most = 0;
  const read = async (): Promise<number> => {
    const { data } = await written.read();
    most = Math.max(most, memoryOf(worker));
    return data.length;
  };
  const lengths = await Promise.all(Array.from({ length: 150 }, read));
  expect(new Set(lengths)).toEqual(new Set([MiB]));
  // All of them at once would be 300 MiB and more: each as a text, and as a frame.
  expect(most - before).toBeLessThan(128 * MiB);
  expect((await bystander.status()).state).toBe('running');
  expect(service.audit.filter(({ action }) => action === 'link.lost')).toEqual([]);
  await bystander.ask('terminate', { signal: 'SIGKILL' });
}, 120_000);
