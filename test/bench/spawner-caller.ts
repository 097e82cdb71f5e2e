/**
 * Measures the spawner alone: the worker's own classes around its socket, without link, checks and HTTP. Works in
 * the folder that it is given.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import pino from 'pino';
import { toolPath } from '../../worker/config.ts';
import { Runs } from '../../worker/runs/runs.ts';
import { Spawner } from '../../worker/runs/spawner.ts';
import { Spaces } from '../../worker/spaces.ts';
import { root } from '../support/service.ts';
import { serveRounds } from './rounds.ts';
import { benchUid, benchUser } from './users.ts';

const log = pino({ level: 'silent' });
const folder = process.argv[2] ?? '';
const workDir = join(folder, 'work');
mkdirSync(workDir, { mode: 0o711 });
const spaces = new Spaces(workDir);
const paths = {
  program: `${root}/dist/helper/native/workspace-runner-native`,
  folder: join(folder, 'spawner'),
  lock: join(folder, 'lock'),
};
const spawner = new Spawner(paths, log);
const runs = new Runs(spawner, 64, log);
const started = spawner.start();

const run = async (caller: number): Promise<void> => {
  const space = spaces.ensure(benchUser(caller));
  const plan = {
    uid: benchUid(caller),
    program: '/bin/true',
    space,
    directory: '',
    args: ['/bin/true'],
    environment: [`PATH=${toolPath}`, 'LANG=C.UTF-8', `HOME=${space}/home`],
    timeLimitMs: 120_000,
    outputBytesMax: 262_144,
    processesMax: 144,
    fileBytesMax: 1_073_741_824,
    addressBytesMax: 0,
    termGraceMs: 0,
    streams: 'empty' as const,
  };
  const { outcome, gone } = await runs.start(plan, () => true, new AbortController().signal);
  const end = await outcome;
  if (end.kind !== 'exit' || end.exit.exitCode !== 0) throw new Error(`a run came out as ${end.kind}`);
  await gone;
};

// When it is hung up on it exits, and the spawner ends by its lifeline.
serveRounds(async () => {
  await started;
  return run;
});
