import { write } from 'node:fs';
import type { Logger } from 'pino';
import { AuditQueue, type WriteBytes } from '../protocol/audit.ts';

/** Never `process.stdout`: on a pipe that is synchronous, and a reader that stalls would stop the whole service. */
const writeToStandardOutput: WriteBytes = (bytes, done) => write(1, bytes, done);

/**
 * The gateway's audit: the bounded queue in front of standard output, and a warning when it had to drop lines.
 * @param closed called when the reader is gone for good
 */
export const openAudit = (
  log: Logger,
  closed: () => void,
  writeBytes: WriteBytes = writeToStandardOutput,
): AuditQueue =>
  new AuditQueue(writeBytes, closed, (dropped) =>
    log.warn({ dropped }, 'audit lines of refusals were dropped: its reader stalls'),
  );
