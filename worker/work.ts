/**
 * Purpose: what does the work, put together: spawner, runs, fs helpers, quota, and the handlers that use them.
 * Rights: root with the three capabilities, which all of it but the spawner only passes on.
 * Called by: main.ts, once.
 * Fails: never by itself; starting the spawner can.
 */
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { AuditQueue } from '../protocol/audit.ts';
import type { WorkerConfig } from './config.ts';
import type { Handlers } from './handlers.ts';
import { HelperPool } from './helpers/helper-pool.ts';
import { helperPlan } from './helpers/program.ts';
import { Answers } from './ledger/answers.ts';
import type { Ledger } from './ledger/ledger.ts';
import { Mutations } from './ledger/mutations.ts';
import { UserLocks } from './locks.ts';
import { execHandler } from './operations/exec.ts';
import { fileHandlers } from './operations/files.ts';
import { operationStatusHandler } from './operations/operation-status.ts';
import { processHandlers } from './operations/process.ts';
import { startHandler } from './operations/process-start.ts';
import { cloneHandler } from './operations/repo-clone.ts';
import { pushHandlers } from './operations/repo-push.ts';
import { worktreeHandlers } from './operations/repo-worktree.ts';
import { usageHandler } from './operations/usage.ts';
import { resetHandler } from './operations/workspace-reset.ts';
import { Processes } from './processes/processes.ts';
import { Quota } from './quota.ts';
import { Runs } from './runs/runs.ts';
import { Spawner } from './runs/spawner.ts';
import type { Spaces } from './spaces.ts';
import { UsageScans } from './usage/scan.ts';

interface WorkParts {
  readonly config: WorkerConfig;
  /** The native program. */
  readonly native: string;
  readonly spaces: Spaces;
  readonly ledger: Ledger;
  readonly audit: AuditQueue;
  readonly log: Logger;
}

/** What main.ts starts, asks and stops. */
export interface Work {
  readonly spawner: Spawner;
  readonly runs: Runs;
  readonly processes: Processes;
  readonly helpers: HelperPool;
  readonly quota: Quota;
  readonly mutations: Mutations;
  readonly handlers: Handlers;
}

/** Puts it together; nothing is started yet. */
export const makeWork = ({ config, native, spaces, ledger, audit, log }: WorkParts): Work => {
  const locks = new UserLocks();
  const lock = join(config.stateDir, 'lock');
  const spawner = new Spawner({ program: native, folder: config.spawnerDir, lock }, log);
  const runs = new Runs(spawner, config.runsMax, log);
  const helpers = new HelperPool(
    spawner,
    {
      plan: helperPlan(config),
      standBy: config.helpersStandBy,
      max: config.helpersMax,
      idleMs: config.helperIdleMs,
      spaceOf: (user) => spaces.pathOf(user),
    },
    log,
  );
  const quota = new Quota(config.quotaBytes, spaces, new UsageScans(spawner, native, log));
  const answers = new Answers();
  const mutations = new Mutations(ledger, answers);
  const processes = new Processes(
    {
      handlesMax: config.processHandlesMax,
      retainBytes: config.processRetainBytes,
      retainMs: config.processRetainMs,
    },
    audit,
  );
  const files = { config, spaces, quota, locks, helpers };
  const handlers: Handlers = {
    exec: execHandler({ ...files, runs }),
    'repo.clone': cloneHandler({ ...files, runs }),
    ...worktreeHandlers({ ...files, runs }),
    ...pushHandlers({ ...files, runs }),
    ...fileHandlers(files),
    'process.start': startHandler({ ...files, runs, processes }),
    ...processHandlers(processes),
    usage: usageHandler(quota),
    'workspace.reset': resetHandler(files),
    'operation.status': operationStatusHandler({ ledger, answers, mutations }),
  };
  return { spawner, runs, processes, helpers, quota, mutations, handlers };
};
