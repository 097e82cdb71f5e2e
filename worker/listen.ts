/**
 * Purpose: the socket that the gateway reaches the worker by: its folder, its mode, and who may connect.
 * Rights: root; makes or tightens one folder and gives it to the gateway's group (CAP_CHOWN).
 * Called by: main.ts.
 * Fails: closed. A folder that isn't safe stops the start; a peer that isn't the gateway's uid is cut off
 * before a byte of it was read; so is a second gateway while the first one lives.
 */
import { spawn } from 'node:child_process';
import { chownSync, lstatSync, unlinkSync } from 'node:fs';
import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { basename, dirname } from 'node:path';
import type { Logger } from 'pino';
import { faultOf } from '../protocol/fault.ts';
import { SettingsError } from '../protocol/settings.ts';
import { prepareOwnFolder } from './own-folder.ts';

const peerCheckTimeoutMs = 2_000;
/** Checks at the same time; the folder lets only root and the gateway's group get this far. */
const peerChecksMax = 4;

/** Where to listen, and for whom. */
export interface ListenOptions {
  readonly socketPath: string;
  readonly gatewayUid: number;
  readonly gatewayGid: number;
  /** The native program, for its mode `peercred`. */
  readonly native: string;
  /** Names in the socket's folder that are the worker's own. */
  readonly ownNames: readonly string[];
  readonly log: Logger;
}

/**
 * Makes the place for the socket. Before anything else is started: a second worker must not get any further.
 * @throws SettingsError when the place is not safe, or taken
 */
export const prepareSocket = async (options: ListenOptions): Promise<void> => {
  const { socketPath, gatewayGid, ownNames } = options;
  prepareOwnFolder({
    subject: 'RUNNER_SOCKET must lie in',
    path: dirname(socketPath),
    mode: 0o750,
    gid: gatewayGid,
    modeAbove: 0o755,
    isOurs: (name) => name === basename(socketPath) || ownNames.includes(name),
  });
  await removeStale(socketPath);
};

/** Removes the socket of an earlier life. @throws SettingsError if somebody listens on it, or it is none */
const removeStale = async (path: string): Promise<void> => {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (!found.isSocket()) throw new SettingsError(['RUNNER_SOCKET names something that is there and is no socket.']);
  const alive = await new Promise<boolean>((resolve) => {
    const probe = createConnection(path, () => {
      probe.destroy();
      resolve(true);
    });
    probe.once('error', () => resolve(false));
  });
  if (alive) throw new SettingsError(['RUNNER_SOCKET is in use by another worker.']);
  unlinkSync(path);
};

/** uid at the other end of a connection that has not been read from yet; undefined when it can't be told. */
const peerUid = async (native: string, socket: Socket): Promise<number | undefined> => {
  const child = spawn(native, ['peercred'], {
    // As descriptor 3: as 0, the worker's own end would become blocking.
    stdio: ['ignore', 'pipe', 'ignore', socket],
    env: {},
    timeout: peerCheckTimeoutMs,
    killSignal: 'SIGKILL',
  });
  let text = '';
  child.stdout?.on('data', (chunk: Buffer) => {
    if (text.length < 32) text += chunk.toString('latin1');
  });
  const code = await new Promise<number | null>((resolve) => {
    child.once('error', () => resolve(null));
    child.once('close', resolve);
  });
  return code === 0 && /^\d{1,10}\n$/.test(text) ? Number(text) : undefined;
};

/** Listens for the gateway. `accept` gets a checked, paused socket and returns what settles when that link is gone. */
export const listen = async (options: ListenOptions, accept: (socket: Socket) => Promise<void>): Promise<Server> => {
  const { socketPath, gatewayUid, gatewayGid, native, log } = options;
  let linked = false;
  let checking = 0;
  const welcome = async (socket: Socket): Promise<void> => {
    socket.on('error', () => undefined);
    if (linked || checking >= peerChecksMax) {
      socket.destroy();
      return;
    }
    checking += 1;
    const uid = await peerUid(native, socket)
      .catch((error: unknown) => {
        log.error(faultOf(error), 'a peer cannot be checked');
        return undefined;
      })
      .finally(() => {
        checking -= 1;
      });
    if (linked || uid !== gatewayUid || socket.destroyed) {
      log.warn({ peerKnown: uid !== undefined, second: linked }, 'a connection that is not the gateway’s was refused');
      socket.destroy();
      return;
    }
    linked = true;
    const closed = accept(socket);
    socket.resume();
    await closed;
    linked = false;
  };
  const server = createServer({ pauseOnConnect: true }, (socket) => void welcome(socket));
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    // connect(2) needs write permission on the socket: 0660, root and the gateway's group.
    const before = process.umask(0o117);
    server.listen(socketPath, resolve);
    process.umask(before);
  });
  chownSync(socketPath, 0, gatewayGid);
  return server;
};
