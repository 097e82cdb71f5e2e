import { lstatSync, readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readSettings, type SettingName, SettingsError, settingsTable } from '../protocol/settings.ts';
import { hostProblems, readHost } from './host.ts';
import { chooseSocket } from './socket.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** What to become: execve(2)'s arguments. */
export interface Launch {
  readonly program: string;
  readonly args: string[];
  readonly environment: Record<string, string>;
}

const compiled = (path: string): string => fileURLToPath(new URL(`../../dist/${path}`, import.meta.url));

/** Variables with a secret, and their forms that name a file. */
const secretNames = ['RUNNER_TOKEN', 'RUNNER_TOKEN_PREVIOUS'] as const;

/**
 * Reads `…_FILE` here, since the gateway, which needs the content, may not be allowed to.
 * @throws SettingsError
 */
const readSecret = (name: string, environment: Environment): string | undefined => {
  const path = environment[`${name}_FILE`];
  if (!path) return environment[name];
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    throw new SettingsError([`${name}_FILE names a file that cannot be read.`]);
  }
};

/** The gateway runs as a uid of its own: all folders above its code must let others pass, the code be readable. */
const unreadableForOthers = (path: string): string | undefined => {
  if ((statSync(path).mode & 0o004) === 0) return path;
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    if ((lstatSync(folder).mode & 0o001) === 0) return folder;
    if (folder === '/') return undefined;
  }
};

/** Settings that this version doesn't know: likely typing errors, so say it, but let newer deployments start. */
const unknownSettings = (environment: Environment): string[] =>
  Object.keys(environment).filter(
    (name) =>
      name.startsWith('RUNNER_') &&
      !Object.hasOwn(settingsTable, name) &&
      !secretNames.some((secret) => name === secret || name === `${secret}_FILE`),
  );

/** The service's own environment: its settings, and what a program needs to run at all. Nothing else gets in. */
const serviceEnvironment = (environment: Environment): Record<string, string> => {
  const passed: Record<string, string> = { PATH: environment['PATH'] ?? '/usr/local/bin:/usr/bin:/bin' };
  for (const [name, value] of Object.entries(environment)) {
    const wanted = Object.hasOwn(settingsTable, name) || name === 'LANG' || name === 'TZ';
    if (wanted && value !== undefined && value !== '') passed[name] = value;
  }
  for (const name of secretNames) {
    const secret = readSecret(name, environment);
    if (secret) passed[name] = secret;
  }
  return passed;
};

/**
 * Checks that the service can start, and says what to execute for it.
 * @throws SettingsError with sentences for the operator
 */
export const prepareStart = (
  part: 'start' | 'worker' | 'gateway',
  given: Environment,
  warn: (sentence: string) => void,
): Launch => {
  const settings = readSettings(given, Object.keys(settingsTable) as SettingName[]);
  for (const name of unknownSettings(given)) warn(`${name} is not a setting of this version and is ignored.`);
  const environment = serviceEnvironment(given);
  const gateway = compiled('gateway/main.js');
  if (part === 'gateway') return { program: process.execPath, args: ['workspace-runner', gateway], environment };

  if (process.getuid?.() !== 0)
    throw new SettingsError(['The worker must be started as root; it drops what it does not need.']);
  const problems = hostProblems(readHost());
  if (problems.length > 0) throw new SettingsError(problems);
  const hidden = unreadableForOthers(gateway) ?? unreadableForOthers(process.execPath);
  if (part === 'start' && hidden !== undefined) {
    throw new SettingsError([`The gateway's user cannot read its code: others may not pass ${hidden}.`]);
  }
  const socket = given['RUNNER_SOCKET'] || chooseSocket(settings.RUNNER_SOCKET, settings.RUNNER_GATEWAY_GID);
  const ids = [String(settings.RUNNER_GATEWAY_UID), String(settings.RUNNER_GATEWAY_GID)];
  return {
    program: compiled('helper/native/workspace-runner-native'),
    args: [
      'workspace-runner',
      'init',
      ...ids,
      process.execPath,
      compiled('worker/main.js'),
      part === 'start' ? gateway : '-',
    ],
    environment: { ...environment, RUNNER_SOCKET: socket },
  };
};
