/**
 * Purpose: the worker's audit: the bounded queue in front of standard output, and what the log says of its troubles.
 * Rights: none of its own; descriptor 1 is init's.
 * Called by: main.ts.
 * Fails: a reader that stalls costs lines about refusals, counted in the log; one that is gone stops the service.
 */
import { write } from 'node:fs';
import type { Logger } from 'pino';
import { AuditQueue } from '../protocol/audit.ts';
import { faultOf } from '../protocol/fault.ts';

/** Opens it. @param closed called when the reader is gone for good */
export const openAudit = (log: Logger, closed: () => void): AuditQueue =>
  new AuditQueue(
    // Never `process.stdout`: on a pipe that is synchronous, and a reader that stalls would stop the whole service.
    (bytes, done) => write(1, bytes, done),
    (error) => {
      log.fatal(faultOf(error), 'the audit cannot be written any more; the service stops');
      closed();
    },
    (dropped) => log.warn({ dropped }, 'audit lines of refusals were dropped: its reader stalls'),
  );
