/**
 * Purpose: the worker's own folders: the work dir that holds all spaces, and the state dir.
 * Rights: root; makes or tightens those two folders only.
 * Called by: main.ts, before anything is listened on.
 * Fails: a folder that is not root's own, or one of the system's, stops the start.
 */
import { resolve } from 'node:path';
import { SettingsError } from '../protocol/settings.ts';
import { prepareOwnFolder } from './own-folder.ts';

/**
 * 0711 for the work dir: users pass through to their own space and can't list the others.
 * 0700 for the state dir: root only.
 * @throws SettingsError
 */
export const prepareFolders = (workDir: string, stateDir: string): void => {
  const [work, state] = [resolve(workDir), resolve(stateDir)];
  // Nobody could pass the state dir to the spaces.
  if (`${work}/`.startsWith(`${state}/`))
    throw new SettingsError(['RUNNER_STATE_DIR must be another folder than RUNNER_WORK_DIR, and not above it.']);
  // An operator may keep other things beside the spaces (a volume has its lost+found): what they hold is not looked at.
  const root = { gid: 0, modeAbove: 0o711, isOurs: () => true };
  prepareOwnFolder({ ...root, subject: 'RUNNER_WORK_DIR must be', path: work, mode: 0o711 });
  prepareOwnFolder({ ...root, subject: 'RUNNER_STATE_DIR must be', path: state, mode: 0o700 });
};
