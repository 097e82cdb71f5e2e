import type { z } from 'zod';
import type { Operation } from '../operation.ts';
import { exec } from './exec.ts';
import { filesDelete } from './files-delete.ts';
import { filesList } from './files-list.ts';
import { filesRead } from './files-read.ts';
import { filesWrite } from './files-write.ts';
import { operationStatus } from './operation-status.ts';
import { processList } from './process-list.ts';
import { processRead } from './process-read.ts';
import { processResize } from './process-resize.ts';
import { processStart } from './process-start.ts';
import { processStatus } from './process-status.ts';
import { processStream } from './process-stream.ts';
import { processTerminate } from './process-terminate.ts';
import { processWrite } from './process-write.ts';
import { repoAgentPush } from './repo-agent-push.ts';
import { repoAgentWorktree } from './repo-agent-worktree.ts';
import { repoClone } from './repo-clone.ts';
import { repoPush } from './repo-push.ts';
import { repoWorktree } from './repo-worktree.ts';
import { usage } from './usage.ts';
import { workspaceReset } from './workspace-reset.ts';

/** The operation table: everything that can be asked of the worker. Routes, dispatch and docs come from it. */
export const operations = {
  exec,
  'repo.clone': repoClone,
  'repo.worktree': repoWorktree,
  'repo.push': repoPush,
  'repo.agent_worktree': repoAgentWorktree,
  'repo.agent_push': repoAgentPush,
  'files.list': filesList,
  'files.read': filesRead,
  'files.write': filesWrite,
  'files.delete': filesDelete,
  'process.start': processStart,
  'process.status': processStatus,
  'process.read': processRead,
  'process.write': processWrite,
  'process.resize': processResize,
  'process.terminate': processTerminate,
  'process.list': processList,
  'process.stream': processStream,
  usage,
  'workspace.reset': workspaceReset,
  'operation.status': operationStatus,
} as const satisfies Record<string, Operation>;

/** The name of one row; `area.verb` where an area has several. */
export type OperationName = keyof typeof operations;

/** The names, for schemas. */
export const operationNames = Object.keys(operations) as [OperationName, ...OperationName[]];

/** The checked request of an operation. */
export type Params<Name extends OperationName> = z.output<(typeof operations)[Name]['params']>;

/** The worker's reply to it, without streams. */
export type Result<Name extends OperationName> = z.output<(typeof operations)[Name]['result']>;
