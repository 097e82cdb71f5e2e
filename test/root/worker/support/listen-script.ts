/** Under the worker's rights: listens, takes in whoever is let through, and says what it sees. */
import { lstatSync } from 'node:fs';
import { dirname } from 'node:path';
import { pino } from 'pino';
import { listen, prepareSocket } from '../../../../worker/listen.ts';

interface Options {
  readonly socketPath: string;
  readonly gatewayUid: number;
  readonly gatewayGid: number;
  readonly native: string;
}

const say = (said: string, more: Readonly<Record<string, unknown>> = {}): void => {
  process.stdout.write(`${JSON.stringify({ said, ...more })}\n`);
};

const options = JSON.parse(process.argv[2] ?? '') as Options;
const log = pino({ level: 'trace' }, { write: (line: string) => say('log', { line }) });
let links = 0;

const folder = (): string => {
  const { mode, uid, gid } = lstatSync(dirname(options.socketPath));
  return `${(mode & 0o7777).toString(8)} ${uid}:${gid}`;
};

process.umask(0o077);
try {
  const place = { ...options, ownNames: ['spawner'], log };
  await prepareSocket(place);
  await listen(place, (socket) => {
    links += 1;
    const link = links;
    say('accepted', { link });
    socket.on('data', (chunk: Buffer) => {
      say('data', { link, text: chunk.toString() });
      socket.write(`echo ${chunk.toString()}`);
    });
    socket.on('error', () => undefined);
    return new Promise((resolve) => {
      socket.on('close', () => {
        say('closed', { link });
        resolve();
      });
    });
  });
  say('listening', { folder: folder() });
} catch (error) {
  const { name, message } = error as Error;
  say('refused', { name, message, folder: folder() });
}
