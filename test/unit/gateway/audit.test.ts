import { describe, expect, test } from 'vitest';
import type { WriteBytes } from '../../../protocol/audit.ts';
import { auditQueueBytesMax } from '../../../protocol/limits.ts';
import { GatewayUnderTest } from './gateway-under-test.ts';
import { exchange, requestText } from './raw-client.ts';

describe('an audit whose reader stalls', () => {
  const stalled: WriteBytes = () => undefined;

  test('refuses new mutations without an id, drops refusals, and says so once', async () => {
    const gateway = await GatewayUnderTest.start({ writeAudit: stalled });
    gateway.worker.onRequest = (link, { id }) => link.succeed(id);
    expect((await gateway.post('/v1/exec', { user: 7, tool: 'git' })).status).toBe(200);
    const denials = Math.ceil(auditQueueBytesMax / 100);
    for (let round = 0; round < denials && !gateway.audits.full; round += 1)
      gateway.audits.add({ action: 'auth.denied', ms: 0, status: 'denied', reason: 'unauthenticated' });
    expect(gateway.audits.full).toBe(true);
    const response = await gateway.post('/v1/exec', { user: 7, tool: 'git' });
    expect(response.status).toBe(503);
    expect(await response.json()).toEqual({ error: 'overloaded', message: expect.any(String) });
    expect((await exchange(gateway.port, requestText('GET /x'))).status).toBe(401);
    expect((await fetch(`${gateway.url}/healthz`)).status).toBe(204);
    expect(gateway.logged.match(/audit lines of refusals were dropped/g)).toHaveLength(1);
    await gateway.stop();
  });
});

test('an audit whose reader is gone stops the service', async () => {
  const broken: WriteBytes = (_bytes, done) => setImmediate(done, new Error('EPIPE'), 0);
  const gateway = await GatewayUnderTest.start({ writeAudit: broken });
  expect((await exchange(gateway.port, requestText('GET /x'))).status).toBe(401);
  await gateway.auditGone;
  // There is nothing to wait for any more.
  await gateway.audits.flushed();
  await gateway.stop();
});
