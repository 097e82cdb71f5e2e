import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createConnection, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { native } from '../../support/spawner-client.ts';

const ask = (descriptor: Socket | 'ignore') =>
  new Promise<{ code: number | null; out: string; err: string }>((resolve) => {
    const child = spawn(native, ['peercred'], { stdio: ['ignore', 'pipe', 'pipe', descriptor] });
    let out = '';
    let err = '';
    child.stdout?.on('data', (text: Buffer) => {
      out += text;
    });
    child.stderr?.on('data', (text: Buffer) => {
      err += text;
    });
    child.on('close', (code) => resolve({ code, out, err }));
  });

test('says the uid at the other end', async () => {
  const folder = mkdtempSync('/tmp/peercred-');
  const path = join(folder, 's');
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(path, resolve));
  const accepted = new Promise<Socket>((resolve) => server.once('connection', resolve));
  const client = createConnection(path);
  expect(await ask(await accepted)).toEqual({ code: 0, out: '0\n', err: '' });
  client.destroy();
  server.close();
  rmSync(folder, { recursive: true });
});

test('says so when descriptor 3 is no connection', async () => {
  const { code, out, err } = await ask('ignore');
  expect([code, out]).toEqual([1, '']);
  expect(err).toMatch(/^workspace-runner peercred: [^\n]+\n$/);
});
