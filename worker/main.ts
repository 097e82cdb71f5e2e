/**
 * Purpose: the root worker. A straight list of steps in security order, then events.
 * Rights: uid 0 with exactly CAP_SETUID, CAP_SETGID, CAP_CHOWN and no_new_privs; all of it goes to the spawner.
 * Called by: the native init.
 * Fails: with one sentence on stderr and status 78 when its settings or rights are wrong; init then stops.
 */
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { drainLimitMs } from '../protocol/limits.ts';
import { SettingsError } from '../protocol/settings.ts';
import { openAudit } from './audit.ts';
import { readConfig } from './config.ts';
import { Dispatch } from './dispatch.ts';
import { prepareFolders } from './folders.ts';
import { clearInterrupted } from './git/clear-interrupted.ts';
import { openInitChannel } from './init-channel.ts';
import { Ledger } from './ledger/ledger.ts';
import { Link } from './link.ts';
import { listen, prepareSocket } from './listen.ts';
import { makeLog } from './log.ts';
import { ownWrongRights } from './rights.ts';
import { Spaces } from './spaces.ts';
import { makeWork } from './work.ts';

/** EX_CONFIG (sysexits.h): init does not start this again. */
const configurationStatus = 78;
/** What comes after the drain at a stop, ms. With it less than the 3 s after which init kills. */
const runsLimitMs = 800;
const spawnerLimitMs = 500;
const ledgerLimitMs = 300;
const flushLimitMs = 200;

const nativeProgram = fileURLToPath(new URL('../helper/native/workspace-runner-native', import.meta.url));

const refuseToStart = (sentence: string): never => {
  process.stderr.write(`workspace-runner worker: ${sentence}\n`);
  process.exit(configurationStatus);
};

const startedAt = performance.now();
process.umask(0o077);
const wrong = ownWrongRights();
if (wrong !== undefined) refuseToStart(wrong);

const main = async (): Promise<void> => {
  const config = readConfig(process.env);
  const log = makeLog(config.logLevel);
  // Nobody would read what another worker says either: the service stops.
  const audit = openAudit(log, () => void stop(0, configurationStatus));
  prepareFolders(config.workDir, config.stateDir);
  const { socketPath, gatewayUid, gatewayGid } = config;
  const place = { socketPath, gatewayUid, gatewayGid, native: nativeProgram, ownNames: ['spawner'], log };
  await prepareSocket(place);

  for (const [tool, path] of config.tools) {
    if (!existsSync(path)) log.warn({ tool }, 'this tool is not there: calling it is answered exec_failed');
  }
  const ledger = await Ledger.open({ stateDir: config.stateDir, retainMs: config.ledgerRetainMs }, log);
  const spaces = new Spaces(config.workDir);
  const broken = spaces.removeLeftovers();
  if (broken > 0) log.warn({ broken }, 'half-made spaces of an earlier life could not be removed');

  const parts = { config, native: nativeProgram, spaces, ledger, audit, log };
  const { spawner, runs, processes, helpers, quota, mutations, handlers } = makeWork(parts);
  const dispatch = new Dispatch({
    handlers,
    mutations,
    audit,
    log,
    userRange: config.userRange,
    overloaded: (row) => audit.full || (row.startsRun === true && runs.full),
  });

  let link: Link | undefined;
  let stopping = false;
  /** No new work; waits for what is under way; ends the rest; leaves. */
  const stop = async (graceMs: number, status: number): Promise<void> => {
    if (stopping) return;
    stopping = true;
    log.info({ graceMs }, 'stopping');
    dispatch.drain();
    quota.stop();
    link?.drain();
    // No drain finishes a process, and each may want its grace.
    processes.lose();
    await Promise.race([link?.idle(), delay(graceMs)]);
    runs.stop();
    link?.end();
    await Promise.race([Promise.all([runs.idle(), helpers.stop(), dispatch.idle()]), delay(runsLimitMs)]);
    await Promise.race([ledger.close(), delay(ledgerLimitMs)]);
    await Promise.race([spawner.stop(), delay(spawnerLimitMs)]);
    const flushed = await Promise.race([audit.flushed().then(() => true), delay(flushLimitMs, false)]);
    // exit() waits for the thread that writes to a reader which has stalled: for ever.
    if (!flushed) process.kill(process.pid, 'SIGKILL');
    process.exit(status);
  };

  const instance = randomUUID();
  const accept = (socket: ConstructorParameters<typeof Link>[0]): Promise<void> => {
    link = new Link(socket, { instance, dispatch, audit, log });
    log.info('the gateway is linked');
    // The next link's gateway may be another one; what nobody asks for any more is not left to run.
    void link.closed.then(() => processes.lose());
    return link.closed;
  };

  await spawner.start();
  helpers.start();
  await clearInterrupted(ledger.interrupted, helpers);
  await listen(place, accept);

  const drain = (): void => void stop(drainLimitMs, 0);
  process.on('SIGTERM', drain);
  process.on('SIGINT', drain);
  process.on('SIGHUP', () => undefined);
  // Ctrl-\ goes to the whole process group. Init does not end by it, and would start what did.
  process.on('SIGQUIT', () => undefined);
  const channel = openInitChannel(process.argv, drain, () => void stop(0, 1));
  channel?.ready();
  const ms = Math.round(performance.now() - startedAt);
  audit.add({ action: 'worker.started', ms, status: 'ok' });
  log.info({ instance, ms }, 'ready');
};

main().catch((error: unknown) => {
  if (error instanceof SettingsError) refuseToStart(error.message);
  process.stderr.write(`workspace-runner worker: ${error instanceof Error ? error.message : 'cannot start'}\n`);
  process.exit(1);
});
