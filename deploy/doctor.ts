/**
 * Purpose: `workspace-runner doctor`: what is in force on this machine, what is wrong, and how to mend it.
 * Rights: only looks, and asks tools for their version as the gateway's user. Run it as the service would be run.
 * Called by: cli.ts.
 * Fails: never; what it can't look at is a finding.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, lstatSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readSettings, type SettingName, settingsTable } from '../protocol/settings.ts';
import { hostProblems, readHost } from './host.ts';

/** One line of the report. */
interface Finding {
  readonly state: 'ok' | 'warn' | 'wrong';
  readonly text: string;
}

const ok = (text: string): Finding => ({ state: 'ok', text });
const warn = (text: string): Finding => ({ state: 'warn', text });
const wrong = (text: string): Finding => ({ state: 'wrong', text });

/** CAP_CHOWN, CAP_SETGID, CAP_SETUID (linux/capability.h). */
const needed = (1n << 0n) | (1n << 6n) | (1n << 7n);

const rights = (): Finding[] => {
  const status = readFileSync('/proc/self/status', 'latin1');
  const effective = BigInt(`0x${/^CapEff:\s*(\w+)/m.exec(status)?.[1] ?? '0'}`);
  const findings = [
    process.getuid?.() === 0 ? ok('runs as root') : wrong('does not run as root: start it with user 0'),
  ];
  if ((effective & needed) !== needed)
    findings.push(wrong('lacks one of CAP_SETUID, CAP_SETGID, CAP_CHOWN: add all three'));
  else if (effective !== needed)
    findings.push(warn('has more than the three capabilities: init drops them; cap_drop ALL is better'));
  else findings.push(ok('has exactly CAP_SETUID, CAP_SETGID, CAP_CHOWN'));
  const locked = /^NoNewPrivs:\s*1/m.test(status);
  findings.push(
    locked ? ok('no_new_privs is set') : warn('no_new_privs is not set: init sets it; no-new-privileges is better'),
  );
  return findings;
};

const host = (): Finding[] => {
  const problems = hostProblems(readHost());
  return problems.length === 0
    ? [ok('the kernel’s uid maps, suid_dumpable and /proc are as needed')]
    : problems.map(wrong);
};

/** A folder that the service makes or keeps: not there yet is fine, something else there is not. */
const folder = (name: string, path: string, mode: number): Finding => {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return ok(`${name}: not there yet, is made at start`);
  if (!found.isDirectory() || found.uid !== 0) return wrong(`${name}: must be a folder that is root’s`);
  if ((found.mode & 0o7777) !== mode) return warn(`${name}: its mode is tightened to 0${mode.toString(8)} at start`);
  return ok(`${name}: root’s, 0${mode.toString(8)}`);
};

/** What of a path, from its end up to the root, somebody else than root could change; undefined if nothing. */
const changeableByOthers = (path: string): string | undefined => {
  for (let level = path; ; level = dirname(level)) {
    const found = lstatSync(level);
    if (found.uid !== 0 || (found.mode & 0o022) !== 0) return level;
    if (level === '/') return undefined;
  }
};

/** The work dir is of no use when a user can't pass what lies above it. */
const passable = (path: string): Finding[] => {
  for (let level = dirname(path); level !== '/'; level = dirname(level)) {
    const found = statSync(level, { throwIfNoEntry: false });
    if (found && (found.mode & 0o001) === 0)
      return [wrong(`RUNNER_WORK_DIR: users cannot pass ${level}: give it mode 0711 or 0755`)];
  }
  return [];
};

/** As the gateway's user: a tool that somebody tampered with must not get root by being asked for its version. */
const tool = (name: string, path: string | undefined, ids: { readonly uid: number; readonly gid: number }): Finding => {
  const places = path === undefined ? ['/usr/local/bin', '/usr/bin', '/bin'].map((place) => join(place, name)) : [path];
  const found = places.find((place) => existsSync(place));
  if (found === undefined) return warn(`${name}: not found; calling it is answered exec_failed`);
  const changeable = changeableByOthers(realpathSync(found));
  if (changeable !== undefined)
    return wrong(`${name}: ${changeable} can be changed by others than root: make it root’s, writable by root alone`);
  const rights = process.getuid?.() === 0 ? ids : {};
  const options = { timeout: 5_000, encoding: 'utf8', env: {}, cwd: '/', ...rights } as const;
  const said = spawnSync(found, ['--version'], options).stdout?.split('\n')[0];
  return ok(`${name}: ${said || 'found, tells no version'}`);
};

const settings = (environment: NodeJS.ProcessEnv): Finding[] => {
  try {
    const values = readSettings(environment, Object.keys(settingsTable) as SettingName[]);
    const ids = { uid: values.RUNNER_GATEWAY_UID, gid: values.RUNNER_GATEWAY_GID };
    const stateDir = values.RUNNER_STATE_DIR ?? join(values.RUNNER_WORK_DIR, '.runner');
    return [
      ok('all settings are valid'),
      ...passable(values.RUNNER_WORK_DIR),
      folder('RUNNER_WORK_DIR', values.RUNNER_WORK_DIR, 0o711),
      folder('RUNNER_STATE_DIR', stateDir, 0o700),
      folder('the folder of RUNNER_SOCKET', dirname(values.RUNNER_SOCKET), 0o750),
      tool('git', values.RUNNER_GIT, ids),
      tool('glab', values.RUNNER_GLAB, ids),
      tool('evo-workflow', values.RUNNER_EVO_WORKFLOW, ids),
      ...Array.from(values.RUNNER_TOOLS, ([name, path]) => tool(name, path, ids)),
      ok(`a run may take ${values.RUNNER_EXEC_TIMEOUT_SEC} s`),
    ];
  } catch (error) {
    return (error instanceof Error ? error.message : '').split('\n').map(wrong);
  }
};

/** Looks at everything. @returns the report, and whether the service would start */
export const examine = (environment: NodeJS.ProcessEnv): { readonly report: string; readonly healthy: boolean } => {
  const node = ok(`Node.js ${process.versions.node}`);
  const findings = [node, ...rights(), ...host(), ...settings(environment)];
  const lines = findings.map(({ state, text }) => `${state.padEnd(5)}  ${text}\n`);
  return { report: lines.join(''), healthy: findings.every(({ state }) => state !== 'wrong') };
};
