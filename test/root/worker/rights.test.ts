import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { productionRights } from '../../support/service.ts';
import { type Ended, runToEnd } from './support/as-worker.ts';

const main = fileURLToPath(new URL('../../../worker/main.ts', import.meta.url));

/** The worker's program under some rights, with a setting that stops it right after the check of its rights. */
const startWith = (rights: readonly string[]): Ended =>
  runToEnd(['env', 'RUNNER_WORK_DIR=not-absolute', ...rights, process.execPath, main]);

const setpriv = (...options: readonly string[]): string[] => ['setpriv', ...options];
const three = '+setuid,+setgid,+chown';
const noNew = '--no-new-privs';

describe('the worker’s program', () => {
  it('with the rights of the design comes to look at its settings', () => {
    const { status, stdout, stderr } = startWith(productionRights);
    expect({ status, stdout }).toStrictEqual({ status: 78, stdout: '' });
    expect(stderr).toMatch(/^workspace-runner worker: RUNNER_WORK_DIR [^\n]*\.\n$/);
  });

  const wrong: readonly (readonly [string, readonly string[], RegExp])[] = [
    ['all capabilities', setpriv(noNew), /exactly CAP_SETUID, CAP_SETGID and CAP_CHOWN/],
    ['all rights', [], /exactly CAP_SETUID/],
    [
      'one capability more',
      setpriv(`--bounding-set=-all,${three},+kill`, '--inh-caps=-all', noNew),
      /exactly CAP_SETUID/,
    ],
    [
      'one capability less',
      setpriv('--bounding-set=-all,+setuid,+setgid', '--inh-caps=-all', noNew),
      /exactly CAP_SETUID/,
    ],
    ['no capability', setpriv('--bounding-set=-all', '--inh-caps=-all', noNew), /exactly CAP_SETUID/],
    ['no_new_privs not set', setpriv(`--bounding-set=-all,${three}`, '--inh-caps=-all'), /no_new_privs/],
    [
      'an inheritable capability',
      setpriv(`--bounding-set=-all,${three}`, '--inh-caps=-all,+chown', noNew),
      /inheritable or ambient/,
    ],
    [
      'an ambient capability',
      setpriv(`--bounding-set=-all,${three}`, '--inh-caps=-all,+chown', '--ambient-caps=+chown', noNew),
      /inheritable or ambient/,
    ],
    [
      'a user’s uid',
      setpriv('--reuid=937000', '--regid=937000', '--clear-groups', '--bounding-set=-all', '--inh-caps=-all', noNew),
      /must run as root/,
    ],
    [
      'the gateway’s uid',
      setpriv('--reuid=19970', '--regid=19970', '--clear-groups', '--bounding-set=-all', '--inh-caps=-all', noNew),
      /must run as root/,
    ],
    [
      'root as its effective uid alone',
      setpriv('--ruid=937000', `--bounding-set=-all,${three}`, '--inh-caps=-all', noNew),
      /must run as root/,
    ],
  ];
  it.each(wrong)('with %s does not start: status 78 and one sentence', (_name, rights, sentence) => {
    const { status, signal, stdout, stderr } = startWith(rights);
    expect({ status, signal, stdout }).toStrictEqual({ status: 78, signal: null, stdout: '' });
    expect(stderr).toMatch(/^workspace-runner worker: The worker must [^\n]*\.\n$/);
    expect(stderr).toMatch(sentence);
  });
});
