/**
 * Purpose: the handles of all processes: bounded in number, unguessable, forgotten some time after the end.
 * Rights: none of its own; runs are started through runs.ts.
 * Called by: operations/process.ts; main.ts at the loss of a link and at the stop.
 * Fails: with refusals; `process_not_found` for what is unknown, expired or of another life.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { AuditQueue } from '../../protocol/audit.ts';
import { Refusal } from '../../protocol/errors.ts';
import { killLimitMs, processGraceMs } from '../../protocol/limits.ts';
import type { RunHandle } from '../runs/runs.ts';
import { Process, type ProcessFacts } from './process.ts';

/** How many, how much and for how long. */
export interface ProcessLimits {
  readonly handlesMax: number;
  readonly retainBytes: number;
  readonly retainMs: number;
}

interface Entry {
  readonly process: Process;
  /** Settles when nothing of it is left, or it could not be ended in time; undefined until it has begun. */
  over: Promise<'gone' | 'resisting'> | undefined;
  expiry: NodeJS.Timeout | undefined;
}

/** 128 random bits behind the number of the user, whose idempotency keys and shard its operations belong to. */
const newId = (user: number): string => `${user}-${randomBytes(16).toString('base64url')}`;

/** The processes of this worker's life. */
export class Processes {
  readonly #limits: ProcessLimits;
  readonly #audit: AuditQueue;
  /** Those that have ended in the order of their ends. */
  readonly #entries = new Map<string, Entry>();

  constructor(limits: ProcessLimits, audit: AuditQueue) {
    this.#limits = limits;
    this.#audit = audit;
  }

  /**
   * Makes a handle for a process that is about to start.
   * @throws Refusal `overloaded` when all handles are of processes that run
   */
  open(facts: Omit<ProcessFacts, 'processId' | 'startedAt'>): Process {
    const running = Array.from(this.#entries.values()).filter(({ process }) => process.termination === undefined);
    if (running.length >= this.#limits.handlesMax) throw new Refusal('overloaded');
    const process = new Process(
      { ...facts, processId: newId(facts.user), startedAt: new Date() },
      this.#limits.retainBytes,
    );
    this.#entries.set(process.facts.processId, { process, over: undefined, expiry: undefined });
    return process;
  }

  /** It has not begun: the handle was never told to anybody. */
  drop({ facts }: Process): void {
    this.#entries.delete(facts.processId);
  }

  /** It runs from here on, until its run is gone. */
  began(process: Process, handle: RunHandle, operationId: string): void {
    const entry = this.#entries.get(process.facts.processId);
    if (entry === undefined) throw new Error('a process without a handle');
    this.#makeRoom();
    process.began(handle.controls);
    const ended = this.#watch(entry, handle, operationId).then(() => 'gone' as const);
    const resists = handle.outcome.then((end) => (end.kind === 'incomplete' ? 'resisting' : ended));
    entry.over = Promise.race([ended, resists]);
  }

  /** @throws Refusal `process_not_found` */
  get(processId: string): Process {
    const entry = this.#entries.get(processId);
    // Nobody has been told of one that has not begun, and whoever was told of a lost one is gone: it does not run for others.
    if (entry?.over === undefined || entry.process.isLost) throw new Refusal('process_not_found');
    return entry.process;
  }

  /** Resolves when nothing of it is left. @throws Refusal `kill_incomplete` if that is not to be had in time */
  async gone(process: Process): Promise<void> {
    if (process.termination !== undefined) return;
    const over = this.#entries.get(process.facts.processId)?.over;
    // What a dead supervisor left is ended by others, who try as long as it takes: whoever waits here is told before.
    const late = delay(processGraceMs + killLimitMs, 'resisting' as const, { ref: false });
    if ((await Promise.race([over, late])) === 'resisting') throw new Refusal('kill_incomplete');
  }

  /** Those of one workspace, oldest first. */
  of(workspaceId: string): Process[] {
    return Array.from(this.#entries.values())
      .filter(({ process, over }) => over !== undefined && !process.isLost && process.facts.workspaceId === workspaceId)
      .map(({ process }) => process)
      .toSorted((one, other) => one.facts.startedAt.getTime() - other.facts.startedAt.getTime());
  }

  /** Whoever asked for them is gone: all that run are ended. */
  lose(): void {
    for (const { process } of this.#entries.values()) if (process.termination === undefined) process.lose();
  }

  /** Only here, and not for a start that may yet be refused: the handle that goes is somebody's. */
  #makeRoom(): void {
    for (const [processId, { process, expiry }] of this.#entries) {
      if (this.#entries.size <= this.#limits.handlesMax) return;
      if (process.termination === undefined) continue;
      clearTimeout(expiry);
      this.#entries.delete(processId);
    }
  }

  async #watch(entry: Entry, handle: RunHandle, operationId: string): Promise<void> {
    const { process } = entry;
    const { processId, user, tool, startedAt } = process.facts;
    // One that resists its end is not over: it runs until it is gone.
    const end = await handle.gone;
    const endedAt = new Date();
    process.ended(end, endedAt);
    // Behind those that ended before: when there is no room, they go first.
    if (this.#entries.delete(processId)) this.#entries.set(processId, entry);
    entry.expiry = setTimeout(() => this.#entries.delete(processId), this.#limits.retainMs).unref();
    const { exitCode, reason } = process.termination ?? { exitCode: null, reason: 'link_lost' };
    this.#audit.add({
      action: 'process.exit',
      user,
      tool,
      ...(exitCode === null ? {} : { exit: exitCode }),
      ms: endedAt.getTime() - startedAt.getTime(),
      status: reason === 'timeout' ? 'timeout' : reason === 'link_lost' ? 'error' : 'ok',
      ...(reason === 'link_lost' ? { reason } : {}),
      operationId,
    });
  }
}
