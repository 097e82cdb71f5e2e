/**
 * Purpose: the worker's settings, checked, and what follows from them.
 * Rights: root; looks whether tools are there, and reads no file.
 * Called by: main.ts, before anything is made.
 * Fails: with a SettingsError that names every bad variable and no value.
 */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { agentTool } from '../protocol/operations/exec.ts';
import { readSettings } from '../protocol/settings.ts';

const names = [
  'RUNNER_WORK_DIR',
  'RUNNER_STATE_DIR',
  'RUNNER_SOCKET',
  'RUNNER_GATEWAY_UID',
  'RUNNER_GATEWAY_GID',
  'RUNNER_EXEC_TIMEOUT_SEC',
  'RUNNER_MAX_OUTPUT_BYTES',
  'RUNNER_MAX_WRITE_BYTES',
  'RUNNER_FILE_TIMEOUT_SEC',
  'RUNNER_RESET_TIMEOUT_SEC',
  'RUNNER_ALLOWED_GIT_HOSTS',
  'RUNNER_PROTECTED_BRANCHES',
  'RUNNER_GIT',
  'RUNNER_GLAB',
  'RUNNER_EVO_WORKFLOW',
  'RUNNER_TOOLS',
  'RUNNER_USER_QUOTA_BYTES',
  'RUNNER_MAX_PROCESSES',
  'RUNNER_MAX_FILE_BYTES',
  'RUNNER_MAX_ADDRESS_BYTES',
  'RUNNER_MAX_RUNS',
  'RUNNER_MAX_PROCESS_HANDLES',
  'RUNNER_PROCESS_TIMEOUT_SEC',
  'RUNNER_PROCESS_RETAIN_BYTES',
  'RUNNER_PROCESS_RETAIN_SEC',
  'RUNNER_HELPERS_STANDBY',
  'RUNNER_HELPERS_MAX',
  'RUNNER_HELPERS_IDLE_SEC',
  'RUNNER_USER_RANGE',
  'RUNNER_LEDGER_RETAIN_DAYS',
  'RUNNER_LOG_LEVEL',
] as const;

/** What runs get as PATH, and where the built-in tools are looked for. */
export const toolPath = '/usr/local/bin:/usr/bin:/bin';

/** The worker's settings, checked. */
export type WorkerConfig = ReturnType<typeof readConfig>;

/** A tool that isn't found keeps its usual place: calling it then fails at the step `exec`, saying why. */
const findTool = (name: string): string =>
  toolPath
    .split(':')
    .map((folder) => join(folder, name))
    .find((path) => existsSync(path)) ?? join('/usr/local/bin', name);

/**
 * Reads the worker's settings.
 * @throws SettingsError
 */
export const readConfig = (environment: NodeJS.ProcessEnv) => {
  const settings = readSettings(environment, names);
  const tools: ReadonlyMap<string, string> = new Map([
    ['git', settings.RUNNER_GIT ?? findTool('git')],
    ['glab', settings.RUNNER_GLAB ?? findTool('glab')],
    [agentTool, settings.RUNNER_EVO_WORKFLOW ?? findTool(agentTool)],
    ...settings.RUNNER_TOOLS,
  ]);
  return {
    workDir: settings.RUNNER_WORK_DIR,
    stateDir: settings.RUNNER_STATE_DIR ?? join(settings.RUNNER_WORK_DIR, '.runner'),
    socketPath: settings.RUNNER_SOCKET,
    /** Within the socket's folder, since that is what a read-only container has writable; its own mode is 0700. */
    spawnerDir: join(dirname(settings.RUNNER_SOCKET), 'spawner'),
    gatewayUid: settings.RUNNER_GATEWAY_UID,
    gatewayGid: settings.RUNNER_GATEWAY_GID,
    execTimeoutMs: settings.RUNNER_EXEC_TIMEOUT_SEC * 1000,
    outputBytesMax: settings.RUNNER_MAX_OUTPUT_BYTES,
    writeBytesMax: settings.RUNNER_MAX_WRITE_BYTES,
    fileTimeoutMs: settings.RUNNER_FILE_TIMEOUT_SEC * 1000,
    resetTimeoutMs: settings.RUNNER_RESET_TIMEOUT_SEC * 1000,
    allowedGitHosts: settings.RUNNER_ALLOWED_GIT_HOSTS,
    protectedBranches: settings.RUNNER_PROTECTED_BRANCHES,
    tools,
    quotaBytes: settings.RUNNER_USER_QUOTA_BYTES,
    processesMax: settings.RUNNER_MAX_PROCESSES,
    fileBytesMax: settings.RUNNER_MAX_FILE_BYTES,
    addressBytesMax: settings.RUNNER_MAX_ADDRESS_BYTES,
    runsMax: settings.RUNNER_MAX_RUNS,
    processHandlesMax: settings.RUNNER_MAX_PROCESS_HANDLES,
    processTimeoutMs: settings.RUNNER_PROCESS_TIMEOUT_SEC * 1000,
    processRetainBytes: settings.RUNNER_PROCESS_RETAIN_BYTES,
    processRetainMs: settings.RUNNER_PROCESS_RETAIN_SEC * 1000,
    helpersStandBy: settings.RUNNER_HELPERS_STANDBY,
    helpersMax: settings.RUNNER_HELPERS_MAX,
    helperIdleMs: settings.RUNNER_HELPERS_IDLE_SEC * 1000,
    userRange: settings.RUNNER_USER_RANGE,
    ledgerRetainMs: settings.RUNNER_LEDGER_RETAIN_DAYS * 86_400_000,
    logLevel: settings.RUNNER_LOG_LEVEL,
  };
};
