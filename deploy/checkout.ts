import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { settingsTable } from '../protocol/settings.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Where a checkout keeps what `npm start` makes; ignored by git. */
const tokenFile = (root: string): string => join(root, 'var', 'token');

const readOrMakeToken = (path: string): string => {
  if (!existsSync(path)) writeFileSync(path, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600 });
  return readFileSync(path, 'utf8').trim();
};

const hasToken = (environment: Environment): boolean =>
  Boolean(environment['RUNNER_TOKEN'] || environment['RUNNER_TOKEN_FILE']);

/** What `npm start` fills in for a newcomer: a token of its own and a work dir within the checkout. */
export const checkoutDefaults = (root: string, environment: Environment): Environment => {
  mkdirSync(join(root, 'var'), { recursive: true, mode: 0o711 });
  return {
    ...environment,
    RUNNER_WORK_DIR: environment['RUNNER_WORK_DIR'] || join(root, 'var', 'work'),
    ...(hasToken(environment) ? {} : { RUNNER_TOKEN: readOrMakeToken(tokenFile(root)) }),
  };
};

/**
 * The first lines that `npm start` says: where the service is, and a request to paste.
 * @param environment as the operator gave it
 */
export const announceCheckout = (root: string, environment: Environment): string => {
  const given = environment['RUNNER_TOKEN_FILE'] ? '$(cat "$RUNNER_TOKEN_FILE")' : '$RUNNER_TOKEN';
  const token = hasToken(environment) ? given : `$(cat ${tokenFile(root)})`;
  const { host = '127.0.0.1', port } = settingsTable.RUNNER_ADDR.schema.parse(
    environment['RUNNER_ADDR'] || settingsTable.RUNNER_ADDR.default,
  );
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
  return `workspace-runner: serving on ${url}${hasToken(environment) ? '' : `; the token it made is in ${tokenFile(root)}`}
workspace-runner: a first request, once it says "listening":

  curl -sS ${url}/v1/exec -H "Authorization: Bearer ${token}" \\
    -d '{"user":7,"tool":"git","args":["init","hello"]}'

`;
};
