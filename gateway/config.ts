import { tokenLengthMin } from '../protocol/limits.ts';
import { readSettings, type Settings } from '../protocol/settings.ts';

const settingNames = [
  'RUNNER_ADDR',
  'RUNNER_WORK_DIR',
  'RUNNER_SOCKET',
  'RUNNER_MAX_BODY_BYTES',
  'RUNNER_MAX_OUTPUT_BYTES',
  'RUNNER_EXEC_TIMEOUT_SEC',
  'RUNNER_MAX_WRITE_BYTES',
  'RUNNER_FILE_TIMEOUT_SEC',
  'RUNNER_RESET_TIMEOUT_SEC',
  'RUNNER_LOG_LEVEL',
] as const;

/** The service tokens; `current` is undefined when none is valid, and then `previous` counts for nothing. */
export interface Tokens {
  readonly current: string | undefined;
  readonly previous: string | undefined;
}

/** All that the gateway is told by its environment. */
export interface Config {
  readonly settings: Settings<(typeof settingNames)[number]>;
  readonly tokens: Tokens;
}

/** A token that is too short to be a secret counts as absent. */
const validToken = (value: string | undefined): string | undefined =>
  value !== undefined && value.length >= tokenLengthMin ? value : undefined;

/**
 * Reads the settings and takes the tokens out of the environment, so that nothing started later inherits them.
 * /proc/<pid>/environ still shows them, to root and to the gateway's own uid, which have this process's memory anyway.
 * @throws SettingsError naming every bad variable
 */
export const takeConfig = (environment: Record<string, string | undefined>): Config => {
  const current = validToken(environment['RUNNER_TOKEN']);
  const previous = validToken(environment['RUNNER_TOKEN_PREVIOUS']);
  delete environment['RUNNER_TOKEN'];
  delete environment['RUNNER_TOKEN_PREVIOUS'];
  return {
    settings: readSettings(environment, settingNames),
    tokens: { current, previous: current === undefined ? undefined : previous },
  };
};
