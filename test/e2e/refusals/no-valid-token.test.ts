import { afterAll, beforeAll, expect, test } from 'vitest';
import { Service } from '../../support/service.ts';
import { systemTools } from '../../support/user.ts';
import { eventually } from '../../support/wait.ts';

const short = 'x'.repeat(31);
const previous = 'an-older-token-that-is-long-enough-0123456789';
let service: Service;

beforeAll(async () => {
  const tokens = { RUNNER_TOKEN: short, RUNNER_TOKEN_PREVIOUS: previous };
  service = await Service.start({ settings: { ...systemTools('true'), ...tokens } });
});
afterAll(() => service.stop());

test('a token of under 32 characters is none: the service starts, warns, and answers 401 to everything', async () => {
  expect((await service.client.get('/healthz')).status).toBe(204);
  const warning = await eventually('the warning', () => service.log.find((line) => line.includes('RUNNER_TOKEN')));
  expect(JSON.parse(warning)).toMatchObject({ level: 40 });
  for (const value of [short, `${short}x`, '', previous]) {
    const headers = { authorization: `Bearer ${value}` };
    const body = JSON.stringify({ user: 110_050, tool: 'true' });
    expect((await service.client.send('POST', '/v1/exec', body, headers)).status, value).toBe(401);
  }
});

test('the warning does not have the token', () => {
  expect(service.log.join('\n')).not.toContain(short);
});

test('all denials are audited', async () => {
  const lines = () => service.audit.filter(({ action }) => action === 'auth.denied');
  await service.audited(() => lines().length === 4);
});
