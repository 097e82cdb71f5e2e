/** Under the worker's rights, in processes of its own: counts while the user's own run does something about it. */
import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { Refusal } from '../../../../protocol/errors.ts';
import { Runs } from '../../../../worker/runs/runs.ts';
import { Spawner } from '../../../../worker/runs/spawner.ts';
import { Spaces, uidOf } from '../../../../worker/spaces.ts';
import { UsageScans } from '../../../../worker/usage/scan.ts';
import { processesOf } from '../../../support/processes.ts';
import { eventually } from '../../../support/wait.ts';

const [scenario = '', folder = '', program = ''] = process.argv.slice(2);
const user = 917_700;
const uid = uidOf(user);

process.umask(0o077);
const workDir = join(folder, 'work');
mkdirSync(workDir);
chmodSync(workDir, 0o711);
const space = new Spaces(workDir).ensure(user);

const log = pino({ level: 'silent' });
const spawner = new Spawner({ program, folder: join(folder, 'spawner'), lock: join(folder, 'lock') }, log);
const runs = new Runs(spawner, 4, log);
const scans = new UsageScans(spawner, program, log);

const shell = (script: string) => {
  const limits = { timeLimitMs: 200_000, outputBytesMax: 1_000, processesMax: 0, fileBytesMax: 0, addressBytesMax: 0 };
  const environment = ['PATH=/usr/bin:/bin'];
  const args = ['/bin/sh', '-c', script];
  const plan = {
    uid,
    program: '/bin/sh',
    space,
    directory: '',
    args,
    environment,
    ...limits,
    termGraceMs: 0,
    streams: 'empty',
  } as const;
  return runs.start(plan, () => true, new AbortController().signal);
};

const counted = async (): Promise<unknown> =>
  scans.scan({ uid, space }).then(
    ({ files }) => files,
    (error: unknown) => (error instanceof Refusal ? error.code : String(error)),
  );

/** The count's own name, as the kernel cuts it; supervisors have it too, but another real uid. */
const killOne = 'pkill -KILL -U $(id -u) -x workspace-runne';

/** Makes files, and starts a run that kills counts; tells how many there were until it has done. */
const againstKiller = async (killer: string) => {
  await (await shell('seq 4000 | xargs touch')).gone;
  const before = await counted();
  const run = await shell(killer);
  await eventually('the killer is there', () => processesOf(uid).length > 0);
  let ended = false;
  void run.gone.then(() => {
    ended = true;
  });
  const answers = new Set<unknown>();
  while (!ended) answers.add(await counted());
  const end = await run.outcome;
  const exitCode = end.kind === 'exit' ? end.exit.exitCode : end.kind;
  return { before, answers: [...answers], exitCode, after: await counted(), left: processesOf(uid).length };
};

const scenarios: Readonly<Record<string, () => Promise<unknown>>> = {
  killedOnce: () => againstKiller(`until ${killOne}; do :; done`),
  killedAlways: () => againstKiller(`n=0; while [ $n -lt 5 ]; do ${killOne} && n=$((n+1)); done`),
};

await spawner.start();
const seen = await scenarios[scenario]?.();
await spawner.stop();
process.stdout.write(JSON.stringify(seen));
