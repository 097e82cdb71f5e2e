import { chmodSync, existsSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type HeldRun, holdRun } from '../../support/held-run.ts';
import { Service, token } from '../../support/service.ts';
import { spaceOf, systemTools } from '../../support/user.ts';

const [first, last] = [110_600, 110_620] as const;
const [busy, brokenBusy] = [110_601, 110_602] as const;
let service: Service;

beforeAll(async () => {
  const settings = { RUNNER_USER_RANGE: `${first}-${last}`, RUNNER_MAX_BODY_BYTES: '5000', RUNNER_MAX_RUNS: '3' };
  service = await Service.start({ settings: { ...systemTools('sh', 'true'), ...settings } });
});
afterAll(() => service.stop());

const large = `{"user":"${'x'.repeat(6_000)}"}`;
const send = async (path: string, body: string, authorization = `Bearer ${token}`): Promise<string> => {
  const answer = await service.client.send('POST', path, body, { authorization });
  return `${answer.status} ${answer.body.error ?? ''}`.trim();
};
const exec = (fields: object): Promise<string> => send('/v1/exec', JSON.stringify(fields));

test('the token comes before everything', async () => {
  expect(await send('/v1/unknown', large, 'Bearer wrong')).toBe('401 unauthenticated');
  expect(await send('/v1/exec', large, 'Bearer wrong')).toBe('401 unauthenticated');
  expect(await send('/v1/exec', '{', 'Bearer wrong')).toBe('401 unauthenticated');
});

test('the route comes before the body', async () => {
  expect(await send('/v1/unknown', large)).toBe('404 route_not_found');
  expect(await send('/v1/unknown', '{')).toBe('404 route_not_found');
});

test('the size comes before the content', async () => {
  expect(await send('/v1/exec', large)).toBe('413 body_too_large');
  expect(await send('/v1/exec', large.slice(0, 100))).toBe('400 bad_request');
});

test('the schema comes before the shard', async () => {
  expect(await exec({ user: last + 1, tool: 'true', args: [7] })).toBe('400 bad_request');
  expect(await exec({ user: last + 1, tool: 'true', dir: '..' })).toBe('400 outside_workspace');
  expect(await exec({ user: last + 1, tool: 'true', agent: 'x' })).toBe('400 bad_agent');
  expect(await exec({ user: last + 1, tool: 'true' })).toBe('421 wrong_shard');
});

test('of several things wrong with a request, what is not well-formed comes first', async () => {
  expect(await exec({ user: first, tool: 'true', dir: '..', args: [7] })).toBe('400 bad_request');
  expect(await exec({ user: first, tool: 'true', agent: 'x', extra: 1 })).toBe('400 bad_request');
});

test('the tool comes before the space, the space before the lock, the lock before the directory', async () => {
  const held: HeldRun[] = [await holdRun(service, busy), await holdRun(service, brokenBusy)];
  chmodSync(spaceOf(service, brokenBusy), 0o755);
  expect(await exec({ user: brokenBusy, tool: 'unknown' })).toBe('403 tool_not_allowed');
  expect(await exec({ user: brokenBusy, tool: 'true' })).toBe('500 workspace_broken');
  expect(await exec({ user: busy, tool: 'unknown', dir: 'missing' })).toBe('403 tool_not_allowed');
  expect(await exec({ user: busy, tool: 'true', dir: 'missing' })).toBe('409 busy');
  chmodSync(spaceOf(service, brokenBusy), 0o700);

  // With a third run there is no room for anybody, and that comes before the tool but after the shard.
  held.push(await holdRun(service, first));
  expect(await exec({ user: last + 1, tool: 'true' })).toBe('421 wrong_shard');
  expect(await exec({ user: last, tool: 'unknown' })).toBe('503 overloaded');
  expect(await exec({ user: busy, tool: 'true' })).toBe('503 overloaded');
  expect(await exec({ user: last, tool: 'true', args: [7] })).toBe('400 bad_request');
  for (const { release } of held) release();
  for (const { answer } of held) expect((await answer).status).toBe(200);
});

test('what was refused before the space made none', () => {
  expect(existsSync(spaceOf(service, first))).toBe(true);
  for (const user of [last, last + 1]) expect(existsSync(spaceOf(service, user))).toBe(false);
});
