import { z } from 'zod';
import { frameBytesMax, userNumberMax, userUidFirst } from './limits.ts';

const KiB = 1024;

/** A whole number written in digits; what is not one is refused, never rounded. */
const whole = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d{1,16}$/, 'must be a whole number')
    .transform(Number)
    .refine((value) => value >= min && value <= max, `must be between ${min} and ${max}`);

const absolutePath = z
  .string()
  .regex(/^\/[^\0]*$/, 'must be an absolute path')
  .refine((path) => !path.split('/').includes('..'), 'must not contain ".."');

/** sun_path holds 108 bytes with its NUL (unix(7)); the spawner's socket lies one folder deeper. */
const socketPath = absolutePath.refine((path) => Buffer.byteLength(path) <= 80, 'must be at most 80 bytes long');

/** Outside the users' range, and never root: a gateway with a user's uid could be traced by that user's tools. */
const gatewayId = whole(1, 0x3fff_ffff).refine(
  (id) => id < userUidFirst || id > userUidFirst + userNumberMax,
  `must not be between ${userUidFirst} and ${userUidFirst + userNumberMax}`,
);

const address = z
  .string()
  .regex(/^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]*):\d{1,5}$/, 'must be host:port, [IPv6]:port or :port')
  .transform((value) => {
    const colon = value.lastIndexOf(':');
    const host = value.slice(0, colon).replace(/^\[|\]$/g, '');
    return { host: host === '' ? undefined : host, port: Number(value.slice(colon + 1)) };
  })
  .refine(({ port }) => port <= 65_535, 'must have a port up to 65535');

/** Names that the server itself gives a meaning can't be taken for other tools. */
const builtInTools = ['git', 'glab', 'evo-workflow'];

const tools = z.string().transform((value, context) => {
  const named = new Map<string, string>();
  for (const entry of value.split(',').filter((part) => part !== '')) {
    const [, name, path] = /^([A-Za-z0-9._-]{1,64})=(\/[^\0]*)$/.exec(entry) ?? [];
    if (
      name === undefined ||
      path === undefined ||
      path.split('/').includes('..') ||
      named.has(name) ||
      builtInTools.includes(name)
    ) {
      context.addIssue({
        code: 'custom',
        message: 'must be name=/path,… with each name once and none of the built-in ones',
      });
      return z.NEVER;
    }
    named.set(name, path);
  }
  return named as ReadonlyMap<string, string>;
});

const userRange = z.string().transform((value, context) => {
  const [, first, last] = /^(\d{1,7})-(\d{1,7})$/.exec(value) ?? [];
  const range = { first: Number(first), last: Number(last) };
  if (value === 'all') return { first: 0, last: userNumberMax };
  if (range.first <= range.last && range.last <= userNumberMax) return range;
  context.addIssue({ code: 'custom', message: `must be first-last within 0-${userNumberMax}` });
  return z.NEVER;
});

/**
 * Largest output or content, so that what holds it fits a frame. Output: two streams, in which U+FFFD triples every
 * byte, so that an answer can always be recorded and sent again whole. Content of a write: JSON takes up to six bytes
 * for one on the way to the fs helper.
 */
const textBytesMax = Math.floor((frameBytesMax - 64 * KiB) / 6);

const listOf = (value: string): string[] => value.split(',').filter((part) => part !== '');

const hosts = z
  .string()
  .regex(/^((\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:\d{1,5})?(,|$))*$/, 'must be host[:port],…')
  .transform((value) => listOf(value.toLowerCase()).map((host) => host.replace(/:443$/, '')));

const branches = z
  .string()
  .regex(/^([^\s,*]+(\/\*)?(,|$))*$/, 'must be names of branches, or the first part of names with /* behind it')
  .transform(listOf);

const logLevel = z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal'], 'must be a level of pino');

/**
 * Every setting: environment variable, how it is checked, and its default. An empty value counts as unset.
 * The defaults and meanings are the specification's (Operations, "Configuration").
 */
export const settingsTable = {
  RUNNER_ADDR: { schema: address, default: ':8090' },
  RUNNER_WORK_DIR: { schema: absolutePath, default: '/work' },
  RUNNER_STATE_DIR: { schema: absolutePath.optional(), default: undefined },
  RUNNER_SOCKET: { schema: socketPath, default: '/run/workspace-runner/worker.sock' },
  RUNNER_GATEWAY_UID: { schema: gatewayId, default: '19999' },
  RUNNER_GATEWAY_GID: { schema: gatewayId, default: '19999' },
  RUNNER_EXEC_TIMEOUT_SEC: { schema: whole(1, 86_400), default: '120' },
  RUNNER_MAX_OUTPUT_BYTES: { schema: whole(0, textBytesMax), default: '262144' },
  RUNNER_MAX_BODY_BYTES: { schema: whole(1, frameBytesMax - 64 * KiB), default: '1048576' },
  RUNNER_MAX_WRITE_BYTES: { schema: whole(0, textBytesMax), default: '262144' },
  RUNNER_FILE_TIMEOUT_SEC: { schema: whole(1, 86_400), default: '30' },
  RUNNER_RESET_TIMEOUT_SEC: { schema: whole(1, 86_400), default: '300' },
  RUNNER_ALLOWED_GIT_HOSTS: { schema: hosts, default: '' },
  RUNNER_PROTECTED_BRANCHES: { schema: branches, default: 'main,master,develop,release/*' },
  RUNNER_GIT: { schema: absolutePath.optional(), default: undefined },
  RUNNER_GLAB: { schema: absolutePath.optional(), default: undefined },
  RUNNER_EVO_WORKFLOW: { schema: absolutePath.optional(), default: undefined },
  RUNNER_TOOLS: { schema: tools, default: '' },
  RUNNER_USER_QUOTA_BYTES: { schema: whole(0, Number.MAX_SAFE_INTEGER), default: '10737418240' },
  RUNNER_MAX_PROCESSES: { schema: whole(0, 4_000_000), default: '128' },
  RUNNER_MAX_FILE_BYTES: { schema: whole(0, Number.MAX_SAFE_INTEGER), default: '1073741824' },
  RUNNER_MAX_ADDRESS_BYTES: { schema: whole(0, Number.MAX_SAFE_INTEGER), default: '0' },
  RUNNER_MAX_RUNS: { schema: whole(1, 1000), default: '64' },
  RUNNER_MAX_PROCESS_HANDLES: { schema: whole(1, 4_096), default: '256' },
  RUNNER_PROCESS_TIMEOUT_SEC: { schema: whole(1, 604_800), default: '3600' },
  RUNNER_PROCESS_RETAIN_BYTES: { schema: whole(4_096, 1_073_741_824), default: '1048576' },
  RUNNER_PROCESS_RETAIN_SEC: { schema: whole(1, 86_400), default: '600' },
  RUNNER_HELPERS_STANDBY: { schema: whole(0, 64), default: '2' },
  RUNNER_HELPERS_MAX: { schema: whole(1, 512), default: '16' },
  RUNNER_HELPERS_IDLE_SEC: { schema: whole(1, 86_400), default: '60' },
  RUNNER_USER_RANGE: { schema: userRange, default: 'all' },
  RUNNER_LEDGER_RETAIN_DAYS: { schema: whole(1, 3_650), default: '7' },
  RUNNER_LOG_LEVEL: { schema: logLevel, default: 'info' },
} as const;

/** The name of a setting. */
export type SettingName = keyof typeof settingsTable;

/** Checked values, by variable. */
export type Settings<Name extends SettingName> = {
  readonly [Key in Name]: z.output<(typeof settingsTable)[Key]['schema']>;
};

/** Settings that can't be used; the message is for the operator and names each variable, never its value. */
export class SettingsError extends Error {
  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.name = 'SettingsError';
  }
}

/**
 * Checks the named settings of an environment.
 * @throws SettingsError naming every bad variable
 */
export const readSettings = <Name extends SettingName>(
  environment: Readonly<Record<string, string | undefined>>,
  names: readonly Name[],
): Settings<Name> => {
  const problems: string[] = [];
  const values: Partial<Record<SettingName, unknown>> = {};
  for (const name of names) {
    const row = settingsTable[name];
    const outcome = row.schema.safeParse(environment[name] || row.default);
    if (outcome.success) values[name] = outcome.data;
    else problems.push(`${name} ${outcome.error.issues[0]?.message ?? 'is not valid'}.`);
  }
  if (problems.length > 0) throw new SettingsError(problems);
  return values as Settings<Name>;
};
