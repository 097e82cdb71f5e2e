import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Answer } from '../../support/http.ts';
import { MiB, memoryOf } from '../../support/memory.ts';
import { type AuditLine, Service } from '../../support/service.ts';
import { systemTools } from '../../support/user.ts';
import { eventually } from '../../support/wait.ts';

const user = 110_900;
let service: Service;
let lines = 0;

beforeAll(async () => {
  service = await Service.start({ settings: systemTools('true'), auditUnread: true });
});
afterAll(() => service.stop());

/** Many requests, some at a time. */
const flood = async (count: number, send: (index: number) => Promise<Answer>): Promise<Map<string, number>> => {
  const outcomes = new Map<string, number>();
  const lane = async (first: number) => {
    for (let index = first; index < count; index += 32) {
      const { status, body } = await send(index);
      const outcome = `${status} ${body.error ?? ''}`.trim();
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: 32 }, (_, lane_) => lane(lane_)));
  return outcomes;
};

const memory = () => [memoryOf(service.part('gateway').pid), memoryOf(service.part('worker').pid)] as const;
const denied = () => service.client.send('POST', '/v1/exec', '{}', { authorization: 'Bearer wrong' });

test('an audit that nobody reads is bounded: refusals go on, mutations are refused until its reader comes back', async () => {
  // So many as to be warm: what grows from here on is not start-up.
  expect(await flood(1_000, denied)).toEqual(new Map([['401 unauthenticated', 1_000]]));
  const before = memory();
  expect(await flood(11_000, denied)).toEqual(new Map([['401 unauthenticated', 11_000]]));

  const full = await eventually('mutations are refused', async () => {
    const answer = await service.exec(user, 'true');
    return answer.status === 503 ? answer : undefined;
  });
  expect(full.body.error).toBe('overloaded');
  expect((await service.client.get('/healthz')).status).toBe(204);
  expect(await flood(2_000, () => service.exec(user, 'true'))).toEqual(new Map([['503 overloaded', 2_000]]));
  for (const [index, after] of memory().entries()) expect(after - (before[index] ?? 0)).toBeLessThan(48 * MiB);

  // Its reader comes back: mutations are served again, and every line that was kept is whole.
  const { stdout } = service.process;
  if (stdout === null) throw new Error('there is nothing to read');
  let last = false;
  createInterface({ input: stdout }).on('line', (text) => {
    const line = JSON.parse(text) as AuditLine;
    lines += 1;
    if (line['user'] === user + 1) last = true;
  });
  const served = async () => (await service.exec(user, 'true')).status === 200;
  await eventually('mutations are served', served, 10_000);
  // What the gateway refuses from here on finds room again, and stands behind all that was kept.
  const wrong = await service.exec(user + 1, 'true', [], { dir: '..' });
  expect(wrong.status).toBe(400);
  await eventually('the last line', () => last, 10_000);
  // A mebibyte of the 14,000 lines was kept, the others dropped, and that was told.
  expect(lines).toBeGreaterThan(5_000);
  expect(lines).toBeLessThan(11_500);
  const warning = await eventually('the warning', () => service.log.find((line) => line.includes('dropped')));
  expect(JSON.parse(warning)).toMatchObject({ level: 40 });
});
