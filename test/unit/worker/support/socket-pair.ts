import { mkdtempSync, rmSync } from 'node:fs';
import { createConnection, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A folder of this test's own, removed by what it returns. */
export const ownFolder = (): { readonly path: string; readonly remove: () => void } => {
  const path = mkdtempSync(join(tmpdir(), 'runner-test-worker-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
};

/** Both ends of a real Unix socket. */
export const socketPair = async (): Promise<readonly [Socket, Socket]> => {
  const folder = ownFolder();
  const path = join(folder.path, 's');
  const accepted = Promise.withResolvers<Socket>();
  const server = createServer(accepted.resolve);
  await new Promise<void>((resolve) => server.listen(path, resolve));
  const near = createConnection(path);
  const far = await accepted.promise;
  server.close();
  folder.remove();
  return [near, far];
};
