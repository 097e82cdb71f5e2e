import { faultOf } from '../protocol/fault.ts';
import { drainLimitMs, responseStallMs } from '../protocol/limits.ts';
import { operations } from '../protocol/operations/index.ts';
import { SettingsError } from '../protocol/settings.ts';
import { openAudit } from './audit.ts';
import { Authentication } from './auth.ts';
import { takeConfig } from './config.ts';
import { Connections } from './connections.ts';
import { drain } from './drain.ts';
import { listen } from './http-server.ts';
import { InitChannel } from './init-channel.ts';
import { deadlinesFor } from './invoke.ts';
import { openLog } from './log.ts';
import { makeServer } from './routes.ts';
import { StartError } from './start-error.ts';
import { proveUnprivileged } from './unprivileged.ts';
import { within } from './within.ts';
import { WorkerLink } from './worker-link.ts';

/** EX_CONFIG of sysexits.h: starting again would not help. */
const exitConfiguration = 78;
/** How long audit and log have to get out before the process ends, ms. */
const lastWordsMs = 200;

const run = async (): Promise<void> => {
  const { settings, tokens } = takeConfig(process.env);
  proveUnprivileged(settings.RUNNER_WORK_DIR);

  const { log, end: endLog } = openLog(settings.RUNNER_LOG_LEVEL);
  const leave = async (code: number): Promise<never> => {
    const written = await within(lastWordsMs, Promise.all([audit.flushed(), endLog()]));
    // exit() waits for the thread that writes to a reader which has stalled: for ever.
    if (!written) process.kill(process.pid, 'SIGKILL');
    process.exit(code);
  };
  const fail = (error: unknown): void => {
    log.fatal(faultOf(error), 'a bug: the gateway stops');
    void leave(1);
  };
  process.on('uncaughtException', fail);
  process.on('unhandledRejection', fail);

  const stage = { draining: false };
  const audit = openAudit(log, () => {
    log.fatal('the reader of the audit is gone: the service stops');
    stop(exitConfiguration);
  });
  const link = new WorkerLink({
    socketPath: settings.RUNNER_SOCKET,
    outputBytesMax: settings.RUNNER_MAX_OUTPUT_BYTES,
    audit,
    log,
  });
  if (tokens.current === undefined) log.warn('RUNNER_TOKEN is not set or too short: every request is answered 401');
  const connections = new Connections(responseStallMs);
  const server = await makeServer({
    table: operations,
    authentication: new Authentication(tokens),
    healthy: () => link.ready && !stage.draining,
    bodyBytesMax: settings.RUNNER_MAX_BODY_BYTES,
    deadlineOf: deadlinesFor({
      execMs: settings.RUNNER_EXEC_TIMEOUT_SEC * 1_000,
      fileMs: settings.RUNNER_FILE_TIMEOUT_SEC * 1_000,
      resetMs: settings.RUNNER_RESET_TIMEOUT_SEC * 1_000,
    }),
    sizes: { writeBytes: settings.RUNNER_MAX_WRITE_BYTES },
    connections,
    link,
    audit,
    log,
    stage,
  });
  const stop = (code: number): void => {
    if (stage.draining) return;
    void drain({ server, connections, link, log, stage, limitMs: drainLimitMs }).then(() => leave(code));
  };
  process.on('SIGTERM', () => stop(0));
  process.on('SIGINT', () => stop(0));
  // Ctrl-\ goes to the whole process group. Init does not end by it, and would start what did.
  process.on('SIGQUIT', () => log.debug('SIGQUIT is ignored'));
  process.on('SIGHUP', () => log.debug('SIGHUP is ignored'));

  log.info({ address: await listen(server, settings.RUNNER_ADDR) }, 'listening');
  server.on('error', (error) => log.error(faultOf(error), 'a connection could not be accepted'));
  const channel = process.argv.find((argument) => argument.startsWith('--init-channel='));
  if (channel === undefined) return;
  const init = new InitChannel(Number(channel.split('=')[1]), { drain: () => stop(0), gone: () => stop(1) });
  await link.whenReady();
  init.ready();
};

run().catch((error: unknown) => {
  const forOperator = error instanceof SettingsError || error instanceof StartError;
  process.stderr.write(`${forOperator ? error.message : faultOf(error).stack}\n`);
  process.exit(forOperator ? exitConfiguration : 1);
});
