import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { processResize } from '../../../protocol/operations/process-resize.ts';
import { processStart } from '../../../protocol/operations/process-start.ts';
import { processTerminate } from '../../../protocol/operations/process-terminate.ts';
import { processWrite } from '../../../protocol/operations/process-write.ts';
import { lettersAt, scripts, textAt } from './exec.ts';
import type { ChaosRow, EffectPlace } from './row.ts';

/** Ready when its second file is there; `bd` for each signal that it gets. */
const awaiting = (signal: string): string =>
  `trap 'printf bd >> "$1"' ${signal}; : > "$1.ready"; while :; do sleep 60 & wait $!; done`;

const start = ({ user, canary }: EffectPlace, script: string, tty: boolean) => ({
  route: processStart.route,
  body: { workspaceId: String(user), tool: 'sh', args: ['-c', script, 'sh', canary], tty },
});

const processId = ({ prepared }: EffectPlace): string => String(prepared?.['processId']);
const kill = (place: EffectPlace) => ({
  route: processTerminate.route,
  body: { processId: processId(place), signal: 'SIGKILL' },
});

export const startRows: readonly ChaosRow[] = [
  {
    what: 'process.start',
    holds: true,
    strikers: ['gateway', 'worker', 'strace', 'harness'],
    route: processStart.route,
    onProcess: 'new',
    body: (place, held) => start(place, scripts[held ? 'held' : 'oneStep'], false).body,
    effect: lettersAt,
    succeeded: (body) => body['dispatchStatus'] === 'started' || body['outputExpired'] === true,
  },
];

export const inputRows: readonly ChaosRow[] = [
  {
    what: 'process.write',
    holds: false,
    strikers: ['gateway', 'worker', 'harness'],
    route: processWrite.route,
    onProcess: 'prepared',
    prepare: (place) => start(place, 'exec cat >> "$1"', false),
    release: kill,
    body: (place) => ({ processId: processId(place), data: place.canary, eof: true }),
    effect: ({ home, canary }) => {
      const times = textAt(join(home, canary)).split(canary).length - 1;
      return { begun: times, completed: times };
    },
    succeeded: (body) => typeof body['written'] === 'number' || body['outputExpired'] === true,
  },
];

/** One that a signal of its own is awaited for, so that each one that comes leaves a trace. */
const signalled = (
  row: Pick<ChaosRow, 'what' | 'route' | 'body' | 'succeeded'>,
  signal: string,
  tty: boolean,
): ChaosRow => ({
  ...row,
  holds: false,
  // Nothing of the request goes on to the supervisor by which a blow there would know it.
  strikers: ['gateway', 'harness'],
  onProcess: 'prepared',
  prepare: (place) => start(place, awaiting(signal), tty),
  ready: ({ home, canary }) => existsSync(join(home, `${canary}.ready`)),
  release: kill,
  mark: processId,
  effect: lettersAt,
});

export const resizeRows: readonly ChaosRow[] = [
  signalled(
    {
      what: 'process.resize',
      route: processResize.route,
      body: (place) => ({ processId: processId(place), rows: 41, cols: 133 }),
      succeeded: (body) => body['resized'] === true || body['outputExpired'] === true,
    },
    'WINCH',
    true,
  ),
];

export const terminateRows: readonly ChaosRow[] = [
  signalled(
    {
      what: 'process.terminate',
      route: processTerminate.route,
      body: (place) => ({ processId: processId(place), signal: 'SIGINT' }),
      succeeded: (body) => 'termination' in body || body['outputExpired'] === true,
    },
    'INT',
    false,
  ),
];
