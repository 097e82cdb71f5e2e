/**
 * The worker's part, played inside a test's own pid namespace: starts the spawner as its child and opens
 * connections to it, since the spawner takes them from its parent only. Each connection is handed to the test.
 *
 * Started by spawner-client.ts with an IPC channel; arguments: the spawner's command line, whole.
 */
import { spawn } from 'node:child_process';
import { createConnection } from 'node:net';

export type StandInRequest =
  | { readonly ask: 'connect'; readonly id: number }
  | { readonly ask: 'close-lifeline' }
  | { readonly ask: 'exit' };

export type StandInNews =
  | { readonly tell: 'ready'; readonly pid: number }
  | { readonly tell: 'connected'; readonly id: number }
  | { readonly tell: 'refused'; readonly id: number; readonly code: string }
  | { readonly tell: 'log'; readonly text: string }
  | { readonly tell: 'exit'; readonly code: number | null; readonly signal: string | null };

const [command, ...args] = process.argv.slice(2);
const socket = args.at(-2);
if (command === undefined || socket === undefined || process.send === undefined) throw new Error('for tests only');

const tell = (news: StandInNews): void => void process.send?.(news);

const spawner = spawn(command, args, { detached: true, stdio: ['pipe', 'pipe', 'pipe'] });
spawner.stderr.on('data', (text: Buffer) => tell({ tell: 'log', text: text.toString() }));
spawner.stdout.once('data', () => tell({ tell: 'ready', pid: spawner.pid ?? 0 }));
spawner.on('close', (code, signal) => tell({ tell: 'exit', code, signal }));

process.on('message', (request: StandInRequest) => {
  switch (request.ask) {
    case 'connect': {
      const connection = createConnection(socket);
      connection.pause();
      connection.once('error', (error: NodeJS.ErrnoException) =>
        tell({ tell: 'refused', id: request.id, code: error.code ?? '' }),
      );
      connection.once('connect', () =>
        process.send?.({ tell: 'connected', id: request.id } satisfies StandInNews, connection),
      );
      return;
    }
    case 'close-lifeline':
      spawner.stdin.end();
      return;
    case 'exit':
      process.exit(0);
  }
});
process.on('disconnect', () => process.exit(0));
