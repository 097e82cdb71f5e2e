import type { Server } from 'node:http';
import type { Logger } from 'pino';
import type { Connections } from './connections.ts';
import { stopListening } from './http-server.ts';
import { within } from './within.ts';
import type { WorkerLink } from './worker-link.ts';

/** How long the last answers have to get out, ms. */
const lastAnswersMs = 200;

/** What a stop goes through. */
export interface DrainParts {
  readonly server: Server;
  readonly connections: Connections;
  readonly link: WorkerLink;
  readonly log: Logger;
  readonly stage: { draining: boolean };
  /** How long work under way may go on, ms. */
  readonly limitMs: number;
}

/**
 * Stops the service: nothing new, what is under way may end within the limit, the rest is answered as
 * `uncertain`. Resolves when no more can be done for the callers.
 */
export const drain = async (parts: DrainParts): Promise<void> => {
  const { server, connections, link, log, stage, limitMs } = parts;
  log.info('stopping');
  stage.draining = true;
  connections.close();
  stopListening(server);
  await within(limitMs, connections.idle());
  link.stop();
  await within(lastAnswersMs, connections.idle());
};
