/** Measures `child_process.spawn` as a service without a spawner would use it: as the user, both outputs read to the end. */
import { spawn } from 'node:child_process';
import { serveRounds } from './rounds.ts';
import { benchUid } from './users.ts';

const run = async (command: readonly string[], uid: number): Promise<void> => {
  const [program = '', ...args] = command;
  const child = spawn(program, args, { uid, gid: uid, env: {}, cwd: '/', stdio: ['ignore', 'pipe', 'pipe'] });
  child.stdout.resume();
  child.stderr.resume();
  await new Promise<void>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => (code === 0 ? resolve() : reject(new Error(`ended with ${code}`))));
  });
};

serveRounds(
  async ({ what }) =>
    (caller) =>
      run(what as readonly string[], benchUid(caller)),
);
