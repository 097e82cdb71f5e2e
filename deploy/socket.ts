import { spawnSync } from 'node:child_process';
import { accessSync, chmodSync, chownSync, constants, existsSync, mkdirSync, mkdtempSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Exits with 0 if somebody listens on the socket that it is given. */
const probe = `require('node:net').connect(process.argv[1], () => process.exit(0)).on('error', () => process.exit(1))`;

/** Far more than the start of a Node.js takes on a busy machine, ms: an answer that is late would be taken for none. */
const probeLimitMs = 20_000;

const inUse = (socket: string): boolean =>
  existsSync(socket) && spawnSync(process.execPath, ['-e', probe, socket], { timeout: probeLimitMs }).status === 0;

const canHold = (folder: string): boolean => {
  try {
    mkdirSync(dirname(folder), { recursive: true, mode: 0o755 });
    if (!existsSync(folder)) mkdirSync(folder, { mode: 0o750 });
    accessSync(folder, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
};

/**
 * Where worker and gateway meet when the operator named no place: the usual one, or a new folder in /tmp where
 * that can't be written (a read-only root with only /tmp to write) or another service of this kind uses it.
 * Its name is made up by mkdtemp(3), so nobody can have prepared it.
 */
export const chooseSocket = (usual: string, gatewayGid: number): string => {
  if (canHold(dirname(usual)) && !inUse(usual)) return usual;
  const folder = mkdtempSync('/tmp/workspace-runner-');
  chmodSync(folder, 0o750);
  chownSync(folder, 0, gatewayGid);
  return join(folder, 'worker.sock');
};
