import type { OperationName, operations } from '../../../protocol/operations/index.ts';
import { execRows } from './exec.ts';
import { deleteRows, resetRows, writeRows } from './files.ts';
import { inputRows, resizeRows, startRows, terminateRows } from './processes.ts';
import { agentPushRows, agentWorktreeRows, cloneRows, pushRows, worktreeRows } from './repositories.ts';
import type { ChaosRow } from './row.ts';

/** The operations that change something. */
type Mutating = {
  [Name in OperationName]: (typeof operations)[Name]['effect'] extends 'mutate' ? Name : never;
}[OperationName];

/** The table: a mutating operation without a row in it does not compile. */
const rowsByOperation = {
  exec: execRows,
  'repo.clone': cloneRows,
  'repo.worktree': worktreeRows,
  'repo.push': pushRows,
  'repo.agent_worktree': agentWorktreeRows,
  'repo.agent_push': agentPushRows,
  'files.write': writeRows,
  'files.delete': deleteRows,
  'workspace.reset': resetRows,
  'process.start': startRows,
  'process.write': inputRows,
  'process.resize': resizeRows,
  'process.terminate': terminateRows,
} as const satisfies Record<Mutating, readonly ChaosRow[]>;

/** All rows. */
export const rows: readonly ChaosRow[] = Object.values(rowsByOperation).flat();
