/**
 * Purpose: how a process ended, in the words of the API, from what was seen of it.
 * Rights: none. Pure.
 * Called by: process.ts.
 * Fails: never, and makes nothing up: what was not seen is null.
 */
import type { Termination } from '../../protocol/operations/process-fields.ts';
import type { RunExit } from '../runs/messages.ts';
import type { RunEnd } from '../runs/run.ts';

/** What was done to a process before it ended. */
export interface Causes {
  /** Signals that terminate calls sent; the names as the end tells them. */
  readonly asked: ReadonlySet<string>;
  readonly linkLost: boolean;
}

const reasonOf = ({ reason, exitCode, signal }: RunExit, { asked, linkLost }: Causes): Termination['reason'] => {
  if (reason === 'timeout') return 'timeout';
  if (reason === 'spawnerLost' || (linkLost && reason === 'stopped')) return 'link_lost';
  // It was told to end, and left by itself: its own code says how.
  if (signal === undefined) return exitCode === undefined ? 'link_lost' : 'exit';
  return reason === 'stopped' || asked.has(signal) ? 'terminated' : 'signal';
};

/** @param end one after which nothing of it is left */
export const terminationOf = (end: RunEnd, causes: Causes, endedAt: Date): Termination => {
  const at = endedAt.toISOString();
  // Whoever looked after it is gone. The spawner has ended what was left, and nobody saw how.
  if (end.kind !== 'exit')
    return { reason: 'link_lost', exitCode: null, signal: null, endedAt: at, maxRssBytes: null, cpuMs: null };
  const { exit } = end;
  return {
    reason: reasonOf(exit, causes),
    exitCode: exit.exitCode ?? null,
    signal: exit.signal ?? null,
    endedAt: at,
    maxRssBytes: exit.maxRssBytes,
    cpuMs: Math.round(exit.cpuMicros / 1000),
  };
};
