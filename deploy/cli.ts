/**
 * Purpose: the command line `workspace-runner`. Checks what can be checked before anything runs, then becomes
 * the native init (execve, same pid): PID 1 in a container.
 * Rights: as given; init brings them down.
 * Called by: an operator, the image, `npm start`.
 * Fails: with one clear sentence on stderr.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { SettingsError } from '../protocol/settings.ts';
import { announceCheckout, checkoutDefaults } from './checkout.ts';
import { examine } from './doctor.ts';
import { prepareStart } from './start.ts';

const help = `Usage: workspace-runner [start | worker | gateway | doctor] [--help | --version]

  start     the whole service: root worker and unprivileged gateway (the default)
  worker    the root worker alone; a gateway elsewhere reaches it by RUNNER_SOCKET
  gateway   the gateway alone, as the unprivileged user that runs this
  doctor    says what is in force here, what is wrong, and how to mend it

Settings are environment variables; docs/configuration.md lists them. The service needs RUNNER_TOKEN.
`;

/** EX_USAGE and EX_CONFIG (sysexits.h). */
const status = { usage: 64, configuration: 78 } as const;

const version = (): string => {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
};

const start = (part: 'start' | 'worker' | 'gateway', fromCheckout: boolean): void => {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const environment = fromCheckout ? checkoutDefaults(root, process.env) : process.env;
  const launch = prepareStart(part, environment, (sentence) => process.stderr.write(`workspace-runner: ${sentence}\n`));
  if (fromCheckout) process.stderr.write(announceCheckout(root, process.env));
  if (process.execve === undefined) throw new SettingsError(['Node.js 24 or newer is needed.']);
  process.execve(launch.program, launch.args, launch.environment);
};

const main = (args: readonly string[]): void => {
  const [first = 'start', ...rest] = args;
  const fromCheckout = rest.length === 1 && rest[0] === '--checkout' && first === 'start';
  if (first === '--help') {
    process.stdout.write(help);
  } else if (first === 'doctor' && rest.length === 0) {
    const { report, healthy } = examine(process.env);
    process.stdout.write(report);
    process.exitCode = healthy ? 0 : 1;
  } else if (first === '--version') {
    process.stdout.write(`${version()}\n`);
  } else if ((first === 'start' || first === 'worker' || first === 'gateway') && (rest.length === 0 || fromCheckout)) {
    start(first, fromCheckout);
  } else {
    process.stderr.write(help);
    process.exitCode = status.usage;
  }
};

try {
  main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof SettingsError)) throw error;
  process.stderr.write(`${error.message.replace(/^/gm, 'workspace-runner: ')}\n`);
  process.exitCode = status.configuration;
}
