/**
 * Purpose: `workspace-runner doctor`: what is in force on this machine, what is wrong, and how to mend it.
 * Rights: only looks. Run it as the service would be run.
 * Called by: cli.ts.
 * Fails: never; what it can't look at is a finding.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, lstatSync, readFileSync } from 'node:fs';
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

const tool = (name: string, path: string | undefined): Finding => {
  const places = path === undefined ? ['/usr/local/bin', '/usr/bin', '/bin'].map((place) => join(place, name)) : [path];
  const found = places.find((place) => existsSync(place));
  if (found === undefined) return warn(`${name}: not found; calling it is answered exec_failed`);
  const said = spawnSync(found, ['--version'], { timeout: 5_000, encoding: 'utf8', env: {} }).stdout?.split('\n')[0];
  return ok(`${name}: ${said || 'found, tells no version'}`);
};

const settings = (environment: NodeJS.ProcessEnv): Finding[] => {
  try {
    const values = readSettings(environment, Object.keys(settingsTable) as SettingName[]);
    const stateDir = values.RUNNER_STATE_DIR ?? join(values.RUNNER_WORK_DIR, '.runner');
    return [
      ok('all settings are valid'),
      folder('RUNNER_WORK_DIR', values.RUNNER_WORK_DIR, 0o711),
      folder('RUNNER_STATE_DIR', stateDir, 0o700),
      folder('the folder of RUNNER_SOCKET', dirname(values.RUNNER_SOCKET), 0o750),
      tool('git', values.RUNNER_GIT),
      tool('glab', values.RUNNER_GLAB),
      tool('evo-workflow', values.RUNNER_EVO_WORKFLOW),
      ...Array.from(values.RUNNER_TOOLS, ([name, path]) => tool(name, path)),
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
