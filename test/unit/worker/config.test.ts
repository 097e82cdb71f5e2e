import { describe, expect, it } from 'vitest';
import { SettingsError } from '../../../protocol/settings.ts';
import { readConfig } from '../../../worker/config.ts';

describe('the settings of the worker', () => {
  it('have the defaults of the specification', () => {
    const { tools, ...rest } = readConfig({});
    expect(rest).toStrictEqual({
      workDir: '/work',
      stateDir: '/work/.runner',
      socketPath: '/run/workspace-runner/worker.sock',
      spawnerDir: '/run/workspace-runner/spawner',
      gatewayUid: 19_999,
      gatewayGid: 19_999,
      execTimeoutMs: 120_000,
      outputBytesMax: 262_144,
      writeBytesMax: 262_144,
      fileTimeoutMs: 30_000,
      resetTimeoutMs: 300_000,
      allowedGitHosts: [],
      protectedBranches: ['main', 'master', 'develop', 'release/*'],
      quotaBytes: 10_737_418_240,
      processesMax: 128,
      fileBytesMax: 1_073_741_824,
      addressBytesMax: 0,
      runsMax: 64,
      processHandlesMax: 256,
      processTimeoutMs: 3_600_000,
      processRetainBytes: 1_048_576,
      processRetainMs: 600_000,
      helpersStandBy: 2,
      helpersMax: 16,
      helperIdleMs: 60_000,
      userRange: { first: 0, last: 1_000_000 },
      ledgerRetainMs: 604_800_000,
      logLevel: 'info',
    });
    expect([...tools.keys()]).toStrictEqual(['git', 'glab', 'evo-workflow']);
    for (const path of tools.values()) expect(path).toMatch(/^\/(usr\/local\/bin|usr\/bin|bin)\/[a-z-]+$/);
  });

  it('follow the operator', () => {
    const config = readConfig({
      RUNNER_WORK_DIR: '/data/w',
      RUNNER_SOCKET: '/data/run/s.sock',
      RUNNER_GATEWAY_UID: '15000',
      RUNNER_GATEWAY_GID: '15001',
      RUNNER_EXEC_TIMEOUT_SEC: '5',
      RUNNER_MAX_OUTPUT_BYTES: '10',
      RUNNER_MAX_WRITE_BYTES: '0',
      RUNNER_FILE_TIMEOUT_SEC: '6',
      RUNNER_RESET_TIMEOUT_SEC: '7',
      RUNNER_ALLOWED_GIT_HOSTS: 'Git.Example:443,10.0.0.1:8443',
      RUNNER_PROTECTED_BRANCHES: 'trunk,stable/*',
      RUNNER_GIT: '/opt/git',
      RUNNER_GLAB: '/opt/glab',
      RUNNER_EVO_WORKFLOW: '/opt/evo',
      RUNNER_TOOLS: 'sh=/bin/sh,rg=/usr/bin/rg',
      RUNNER_USER_QUOTA_BYTES: '4',
      RUNNER_MAX_PROCESSES: '0',
      RUNNER_MAX_FILE_BYTES: '1',
      RUNNER_MAX_ADDRESS_BYTES: '2',
      RUNNER_MAX_RUNS: '3',
      RUNNER_MAX_PROCESS_HANDLES: '5',
      RUNNER_PROCESS_TIMEOUT_SEC: '8',
      RUNNER_PROCESS_RETAIN_BYTES: '4096',
      RUNNER_PROCESS_RETAIN_SEC: '9',
      RUNNER_HELPERS_STANDBY: '0',
      RUNNER_HELPERS_MAX: '1',
      RUNNER_HELPERS_IDLE_SEC: '7',
      RUNNER_USER_RANGE: '10-20',
      RUNNER_LOG_LEVEL: 'warn',
    });
    expect({ ...config, tools: Object.fromEntries(config.tools) }).toStrictEqual({
      workDir: '/data/w',
      stateDir: '/data/w/.runner',
      socketPath: '/data/run/s.sock',
      spawnerDir: '/data/run/spawner',
      gatewayUid: 15_000,
      gatewayGid: 15_001,
      execTimeoutMs: 5_000,
      outputBytesMax: 10,
      writeBytesMax: 0,
      fileTimeoutMs: 6_000,
      resetTimeoutMs: 7_000,
      allowedGitHosts: ['git.example', '10.0.0.1:8443'],
      protectedBranches: ['trunk', 'stable/*'],
      tools: { git: '/opt/git', glab: '/opt/glab', 'evo-workflow': '/opt/evo', sh: '/bin/sh', rg: '/usr/bin/rg' },
      quotaBytes: 4,
      processesMax: 0,
      fileBytesMax: 1,
      addressBytesMax: 2,
      runsMax: 3,
      processHandlesMax: 5,
      processTimeoutMs: 8_000,
      processRetainBytes: 4_096,
      processRetainMs: 9_000,
      helpersStandBy: 0,
      helpersMax: 1,
      helperIdleMs: 7_000,
      userRange: { first: 10, last: 20 },
      ledgerRetainMs: 604_800_000,
      logLevel: 'warn',
    });
    expect(readConfig({ RUNNER_STATE_DIR: '/state' }).stateDir).toBe('/state');
  });

  it('a tool that is nowhere keeps its usual place, so that calling it says what is missing', () => {
    // Nothing on this machine is called so, and RUNNER_EVO_WORKFLOW is empty: as if unset.
    const path = readConfig({ RUNNER_EVO_WORKFLOW: '' }).tools.get('evo-workflow');
    expect(path?.startsWith('/') && path.endsWith('/evo-workflow')).toBe(true);
  });

  const bad: readonly (readonly [string, string])[] = [
    ['RUNNER_WORK_DIR', 'work'],
    ['RUNNER_WORK_DIR', '/a/../b'],
    ['RUNNER_STATE_DIR', './s'],
    ['RUNNER_SOCKET', `/${'x'.repeat(80)}`],
    ['RUNNER_GATEWAY_UID', '0'],
    ['RUNNER_GATEWAY_UID', '20001'],
    ['RUNNER_GATEWAY_GID', '1019999'],
    ['RUNNER_EXEC_TIMEOUT_SEC', '0'],
    ['RUNNER_EXEC_TIMEOUT_SEC', '1.5'],
    ['RUNNER_MAX_OUTPUT_BYTES', '-1'],
    ['RUNNER_MAX_WRITE_BYTES', '-1'],
    ['RUNNER_FILE_TIMEOUT_SEC', '0'],
    ['RUNNER_RESET_TIMEOUT_SEC', '86401'],
    ['RUNNER_ALLOWED_GIT_HOSTS', 'https://git.example'],
    ['RUNNER_PROTECTED_BRANCHES', 'main,re*'],
    ['RUNNER_GIT', 'git'],
    ['RUNNER_TOOLS', 'git=/bin/sh'],
    ['RUNNER_TOOLS', 'sh=bin/sh'],
    ['RUNNER_TOOLS', 'sh=/bin/sh,sh=/bin/bash'],
    ['RUNNER_MAX_RUNS', '0'],
    ['RUNNER_USER_RANGE', '5-4'],
    ['RUNNER_USER_RANGE', '0-1000001'],
    ['RUNNER_LOG_LEVEL', 'loud'],
  ];
  it.each(bad)('%s=%s stops the start, named and not quoted', (name, value) => {
    const read = (): unknown => readConfig({ [name]: value });
    expect(read).toThrow(SettingsError);
    expect(read).toThrow(name);
    expect(read).not.toThrow(value === '0' || value === '-1' ? `"${value}"` : value);
  });
});
