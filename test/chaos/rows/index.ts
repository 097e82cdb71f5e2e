import type { OperationName, operations } from '../../../protocol/operations/index.ts';
import { execRows } from './exec.ts';
import { deleteRows, resetRows, writeRows } from './files.ts';
import type { ChaosRow } from './row.ts';

/** The operations that change something. */
type Mutating = {
  [Name in OperationName]: (typeof operations)[Name]['effect'] extends 'mutate' ? Name : never;
}[OperationName];

/** The table: a mutating operation without a row in it does not compile. */
const rowsByOperation = {
  exec: execRows,
  'files.write': writeRows,
  'files.delete': deleteRows,
  'workspace.reset': resetRows,
  // Not struck yet. Their effect is on a process, which is ended with the link that a strike cuts, so that what is on the
  // disk afterwards does not tell whether it was had.
  'process.start': [],
  'process.write': [],
  'process.resize': [],
  'process.terminate': [],
} as const satisfies Record<Mutating, readonly ChaosRow[]>;

/** All rows. */
export const rows: readonly ChaosRow[] = Object.values(rowsByOperation).flat();
