/**
 * Purpose: the worker's own folders: the work dir that holds all spaces, and the state dir.
 * Rights: root; makes or tightens those two folders only.
 * Called by: main.ts, before anything is listened on.
 * Fails: a folder that is not root's own stops the start.
 */
import { chmodSync, chownSync, lstatSync, mkdirSync } from 'node:fs';
import { SettingsError } from '../protocol/settings.ts';

const prepare = (variable: string, path: string, mode: number): void => {
  mkdirSync(path, { recursive: true, mode });
  const found = lstatSync(path);
  if (!found.isDirectory() || found.uid !== 0)
    throw new SettingsError([`${variable} must be a folder that is root’s.`]);
  chmodSync(path, mode);
  chownSync(path, 0, 0);
};

/**
 * 0711 for the work dir: users pass through to their own space and can't list the others.
 * 0700 for the state dir: root only.
 * @throws SettingsError
 */
export const prepareFolders = (workDir: string, stateDir: string): void => {
  prepare('RUNNER_WORK_DIR', workDir, 0o711);
  prepare('RUNNER_STATE_DIR', stateDir, 0o700);
};
