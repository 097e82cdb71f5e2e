import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ask } from '../../support/files.ts';
import { allProcesses } from '../../support/processes.ts';
import { Service } from '../../support/service.ts';
import { spaceOf } from '../../support/user.ts';

const user = 454_000;
const word = `planted-${randomBytes(9).toString('hex')}`;
let service: Service;

beforeAll(async () => {
  service = await Service.start({ settings: { RUNNER_LOG_LEVEL: 'trace' } });
});
afterAll(() => service.stop());

/** Every file beneath a folder but one subfolder. */
const filesBeneath = (top: string, leaveOut: string): string[] =>
  readdirSync(top, { withFileTypes: true }).flatMap((entry) => {
    const path = join(top, entry.name);
    if (path === leaveOut) return [];
    if (entry.isDirectory()) return filesBeneath(path, leaveOut);
    return entry.isFile() ? [path] : [];
  });

test('no name, path or content is in the audit, the log, the ledger or a command line', async () => {
  const path = `${word}/${word}`;
  const asked = [
    ['files/write', { path: word, content: word }, 200],
    ['files/read', { path: word }, 200],
    ['files/list', { path: word }, 400],
    ['files/write', { path, content: word }, 400],
    ['files/write', { path: `no-${path}`, content: word }, 404],
    ['files/read', { path: `/${word}` }, 400],
    ['files/write', { path: word, content: `${word}\0` }, 400],
    ['files/delete', { path: `${word}-missing` }, 404],
    ['files/list', { path: '', [word]: word }, 400],
    ['files/delete', { path: word }, 200],
  ] as const;
  const processes: string[] = [];
  for (const [route, fields, status] of asked) {
    const answer = await ask(service, route, { user, ...fields }, `${word}-${route.slice(6)}-${status}`);
    expect(answer.status, `${route} ${answer.text}`).toBe(status);
    processes.push(...allProcesses().map(({ command }) => command));
  }
  await ask(service, 'files/list', { user: user + 1 });
  await service.audited((line) => line['user'] === user + 1);
  expect(service.audit.filter((line) => line['user'] === user).length).toBeGreaterThanOrEqual(asked.length);
  expect(service.auditText.join('\n')).not.toContain(word);
  expect(service.log.length).toBeGreaterThan(4);
  expect(service.log.join('\n')).not.toContain(word);
  const kept = filesBeneath(service.folder, spaceOf(service, user));
  expect(kept.some((file) => file.includes('ledger'))).toBe(true);
  for (const file of kept) expect(`${file}\n${readFileSync(file, 'latin1')}`.includes(word), file).toBe(false);
  expect(processes.join('\n')).not.toContain(word);
});
