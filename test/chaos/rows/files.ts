import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { filesDelete } from '../../../protocol/operations/files-delete.ts';
import { filesWrite } from '../../../protocol/operations/files-write.ts';
import { workspaceReset } from '../../../protocol/operations/workspace-reset.ts';
import type { ChaosRow, Effect, EffectPlace } from './row.ts';

const isThere = ({ home, canary }: EffectPlace): boolean => existsSync(join(home, canary));
const allOrNothing = (done: boolean): Effect => (done ? { begun: 1, completed: 1 } : { begun: 0, completed: 0 });
const writeBody = ({ user, canary }: EffectPlace) => ({ user, path: canary, content: canary });
const prepared = (place: EffectPlace) => ({ route: filesWrite.route, body: writeBody(place) });
/** The answer says so, or it has expired. */
const says =
  (field: string) =>
  (body: Readonly<Record<string, unknown>>): boolean =>
    body[field] === true || body['outputExpired'] === true;

/** No supervisor is launched for one: a helper that is there already does it. */
const strikers = ['gateway', 'worker', 'harness'] as const;

export const writeRows: readonly ChaosRow[] = [
  {
    what: 'files.write',
    holds: false,
    strikers,
    route: filesWrite.route,
    body: writeBody,
    effect: (place) => allOrNothing(isThere(place)),
    succeeded: says('written'),
  },
];

export const deleteRows: readonly ChaosRow[] = [
  {
    what: 'files.delete',
    holds: false,
    strikers,
    route: filesDelete.route,
    prepare: prepared,
    body: ({ user, canary }) => ({ user, path: canary }),
    effect: (place) => allOrNothing(!isThere(place)),
    succeeded: says('deleted'),
  },
];

export const resetRows: readonly ChaosRow[] = [
  {
    what: 'workspace.reset',
    holds: false,
    // There is no canary in it that another part could know it by.
    strikers: ['harness'],
    route: workspaceReset.route,
    // It takes along what other rounds look at.
    userOfItsOwn: true,
    prepare: prepared,
    body: ({ user }) => ({ user }),
    effect: (place) => {
      const folders = [
        place.home,
        join(place.home, 'repos'),
        join(place.home, 'work'),
        join(dirname(place.home), 'tmp'),
      ];
      const begun = isThere(place) ? 0 : 1;
      return { begun, completed: begun === 1 && folders.every((path) => existsSync(path)) ? 1 : 0 };
    },
    succeeded: says('reset'),
  },
];
