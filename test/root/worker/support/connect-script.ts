/** As somebody: connects, says something at once, and tells how it goes. More is said for each line of input. */
import { createConnection } from 'node:net';

const [path = '', early = ''] = process.argv.slice(2);

const say = (said: string, more: Readonly<Record<string, unknown>> = {}): void => {
  process.stdout.write(`${JSON.stringify({ said, ...more })}\n`);
};

const socket = createConnection(path);
socket.on('connect', () => {
  say('connected');
  socket.write(early);
});
socket.on('data', (chunk: Buffer) => say('heard', { text: chunk.toString() }));
socket.on('error', (error: NodeJS.ErrnoException) => say('failed', { code: error.code, call: error.syscall }));
socket.on('close', () => {
  say('over');
  process.exit();
});
process.stdin.on('data', (chunk: Buffer) => socket.write(chunk));
