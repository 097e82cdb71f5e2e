/**
 * Purpose: makes the scratch folder for one git workflow: an empty HOME for the commands that hold a token, and, if
 * asked for, a clean repository, and one that borrows.
 * Rights: the user's.
 * Called by: main.ts, with what an earlier workflow left removed.
 * Fails: `workspace_broken` when the space's `tmp` is no folder, `bad_target` when what would be borrowed is of the
 * wrong kind; else `file_failed`, also for a clone that is not there. What was made by then is a left-over.
 */
import { chmodSync } from 'node:fs';
import { type FsCalls, type FsResults, scratchNames } from '../../contract/fs.ts';
import { makeCleanRepository } from '../clean-repository.ts';
import { held, holding } from '../descriptor.ts';
import { ensureFolder, inNewFolder, makeFolder } from '../folders.ts';
import { FsRefusal } from '../refusal.ts';
import { scratchName, tmpName } from '../space.ts';

const withTmp = (space: number, act: (tmp: number) => void): void => {
  ensureFolder(space, tmpName);
  holding(space, tmpName, ({ descriptor, stat }) => {
    if (!stat.isDirectory()) throw new FsRefusal('workspace_broken');
    // Open for others, even by an access list, whose mask this takes too: a process of another user's that was handed
    // a descriptor of it could swap what is made here while a token is about.
    chmodSync(held(descriptor), 0o700);
    act(descriptor);
  });
};

/** Makes the scratch folder. */
export const scratch = (space: number, home: number, { clean }: FsCalls['scratch']): FsResults['scratch'] => {
  withTmp(space, (tmp) => {
    inNewFolder(tmp, scratchName, (folder) => {
      makeFolder(folder, scratchNames.home);
      if (clean !== null) makeCleanRepository(folder, home, clean);
    });
  });
  return {};
};
