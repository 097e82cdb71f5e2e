/**
 * Purpose: one git workflow: several git commands and calls of the fs helper, one after another, under the user's lock
 * and within one time limit.
 * Rights: root with the three capabilities, used through the spawner and the pool of helpers only.
 * Called by: the handlers of the repo routes.
 * Fails: a command that fails, or finds no time, ends the workflow with a result that says so; whatever else is a refusal.
 * What it made in the scratch folder is removed; the lock is given back when no process of it is left.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FsCall } from '../../helper/contract/fs.ts';
import type { AuditAction } from '../../protocol/audit.ts';
import { errorRow, Refusal } from '../../protocol/errors.ts';
import type { HandlerContext } from '../handlers.ts';
import type { FileHelpers } from '../operations/file-helpers.ts';
import { type LaunchDependencies, settled } from '../operations/launching.ts';
import type { RunExit } from '../runs/messages.ts';
import type { RunPlace } from '../runs/runs.ts';
import type { GitCommand } from './commands.ts';
import { gitEnvironment, type Transport } from './environment.ts';
import { gitPlan } from './plan.ts';
import { type OutputUse, Words } from './words.ts';

/** What a workflow is made of. */
export interface GitDependencies extends Omit<LaunchDependencies, 'helpers'> {
  readonly helpers: FileHelpers;
}

/** Whose workflow it is, and what it is called. */
interface SessionOf {
  readonly user: number;
  readonly space: string;
  readonly action: AuditAction;
  readonly entries: readonly string[];
}

/** Where a command may go, and who hears what it says. */
interface Options {
  readonly transport: Transport;
  readonly output: OutputUse;
}

/** Ends a workflow whose command failed; its exit is in the session. */
class CommandFailed extends Error {}

/** How the workflow ended, as far as its git commands are concerned. */
export interface SessionResult {
  readonly ok: boolean;
  readonly exitCode: number;
  readonly truncated: boolean;
  readonly timedOut: boolean;
  readonly durationMs: number;
}

/** One workflow under way. */
export class GitSession {
  readonly #dependencies: GitDependencies;
  readonly #of: SessionOf;
  readonly #context: HandlerContext;
  readonly #words: Words;
  readonly #startedAt = performance.now();
  readonly #place: RunPlace;
  readonly #release: () => void;
  /** Settles when nothing of the last command is left. */
  #gone: Promise<unknown> = Promise.resolve();
  /** False while there is nothing of it on the disk. */
  #begun = false;
  #changing = false;
  /** False once programs of the user's may have run, which can signal and limit the helper. */
  #trusted = true;
  #exitCode = 0;
  #timedOut = false;

  private constructor(dependencies: GitDependencies, of: SessionOf, context: HandlerContext) {
    const { locks, runs, config } = dependencies;
    this.#dependencies = dependencies;
    this.#of = of;
    this.#context = context;
    this.#words = new Words(context.outputs, config.outputBytesMax);
    this.#release = locks.acquire(of.user, { action: of.action, operationId: context.operationId });
    try {
      this.#place = runs.take();
    } catch (error) {
      this.#release();
      throw error;
    }
  }

  /**
   * Carries a workflow out.
   * @returns how it ended, and what `steps` gave if it got to its end
   * @throws Refusal
   */
  static async run<T>(
    dependencies: GitDependencies,
    of: SessionOf,
    context: HandlerContext,
    steps: (session: GitSession) => Promise<T>,
  ): Promise<{ readonly result: SessionResult; readonly value: T | undefined }> {
    const session = new GitSession(dependencies, of, context);
    try {
      const value = await steps(session);
      return { result: session.#result(true), value };
    } catch (error) {
      if (!(error instanceof CommandFailed)) throw session.#refused(error);
      return { result: session.#result(false), value: undefined };
    } finally {
      await session.#close();
    }
  }

  /** Puts the workflow on record. @throws Refusal `ledger_unavailable` */
  async begin(): Promise<void> {
    await this.#context.begin();
    this.#begun = true;
  }

  /** Runs a command that gets the request's environment: only in the scratch folder, where nothing is the user's. */
  async onNetwork(command: GitCommand): Promise<void> {
    const { entries } = this.#of;
    await this.#must(command, { transport: 'https', output: 'told' }, entries);
  }

  /** Runs a command without a token, whose words are told. */
  async local(command: GitCommand, transport: 'file' | 'none' = 'none'): Promise<void> {
    await this.#must(command, { transport, output: 'told' });
  }

  /**
   * What a command without a token says, without its last line break; undefined when it ends with status 1, by which git
   * says that there is no such thing. Any other status, or more than is read, ends the workflow.
   */
  async ask(command: GitCommand): Promise<string | undefined> {
    const { exitCode, stdoutCut } = await this.#run(command, { transport: 'none', output: 'asked' });
    if (exitCode === 1) return undefined;
    if (exitCode !== 0) throw new CommandFailed();
    if (stdoutCut) this.fail();
    return this.#words.asked().replace(/\n$/, '');
  }

  /** Runs a command that may fail. */
  async attempt(command: GitCommand): Promise<void> {
    await this.#run(command, { transport: 'none', output: 'asked' });
  }

  /** From here on the user's repository changes: nothing is refused any more as if it had not. */
  changing(): void {
    this.#changing = true;
  }

  /** The workflow has failed without a failed command: what git said it did is not there. */
  fail(): never {
    if (this.#exitCode === 0) this.#exitCode = 1;
    throw new CommandFailed();
  }

  /** A call of the user's helper, within its own time limit and the workflow's. @throws Refusal */
  async help(call: FsCall): Promise<unknown> {
    const { helpers, config } = this.#dependencies;
    const deadlineMs = Math.min(this.#remainingMs(), config.fileTimeoutMs);
    if (deadlineMs <= 0) this.#outOfTime();
    this.#renewHelper();
    return helpers.call(this.#of.user, call, { deadlineMs, signal: this.#context.signal });
  }

  #refused(error: unknown): unknown {
    const nothingDone = error instanceof Refusal && errorRow(error.code).effect === 'none';
    return nothingDone && this.#changing ? new Refusal('uncertain') : error;
  }

  #renewHelper(): void {
    if (!this.#trusted) this.#dependencies.helpers.discard(this.#of.user);
    this.#trusted = true;
  }

  #remainingMs(): number {
    return Math.ceil(this.#startedAt + this.#dependencies.config.execTimeoutMs - performance.now());
  }

  #outOfTime(): never {
    this.#timedOut = true;
    this.#exitCode = -1;
    throw new CommandFailed();
  }

  /** @throws CommandFailed */
  async #must(command: GitCommand, options: Options, entries: readonly string[] = []): Promise<void> {
    const { exitCode } = await this.#run(command, options, entries);
    if (exitCode !== 0) throw new CommandFailed();
  }

  /** @throws CommandFailed when its time was over or a signal ended it; Refusal */
  async #run(command: GitCommand, options: Options, entries: readonly string[] = []): Promise<RunExit> {
    const { runs, config } = this.#dependencies;
    const timeLimitMs = this.#remainingMs();
    if (timeLimitMs <= 0) this.#outOfTime();
    const plan = gitPlan(config, this.#of, command, {
      environment: gitEnvironment(this.#of.space, options.transport, entries),
      timeLimitMs,
      outputBytesMax: this.#words.limit(options.output),
    });
    const handle = await runs.start(plan, this.#words.begin(options.output), this.#context.signal, this.#place);
    if (command.runsPrograms) this.#trusted = false;
    this.#gone = handle.gone;
    const exit = await settled(handle, this.#context, 'file_failed');
    await handle.gone;
    this.#words.end(exit, options.output);
    this.#exitCode = exit.exitCode ?? -1;
    if (exit.reason === 'timeout') this.#outOfTime();
    if (exit.exitCode === undefined) throw new CommandFailed();
    return exit;
  }

  #result(ok: boolean): SessionResult {
    const exitCode = ok ? 0 : this.#exitCode;
    this.#context.note(this.#timedOut ? { exit: exitCode, status: 'timeout' } : { exit: exitCode });
    return {
      ok,
      exitCode,
      truncated: this.#words.cut,
      timedOut: this.#timedOut,
      durationMs: Math.round(performance.now() - this.#startedAt),
    };
  }

  async #close(): Promise<void> {
    // What has ended is gone within this turn of the loop; a command that resists its end is not.
    const isGone = await Promise.race([this.#gone.then(() => true), nextTurn(false)]);
    if (isGone) await this.#leave();
    else void this.#gone.then(() => this.#leave());
  }

  /** Clears away what is left, and gives the lock back; the next workflow clears what can't be now. */
  async #leave(): Promise<void> {
    const { helpers, quota, config } = this.#dependencies;
    const { user } = this.#of;
    if (this.#begun) {
      this.#renewHelper();
      // Also when nobody waits any more.
      const limits = { deadlineMs: config.fileTimeoutMs, signal: new AbortController().signal };
      await helpers.call(user, { verb: 'clear' }, limits).catch(() => undefined);
      quota.changed(user);
    }
    this.#place.giveBack();
    this.#release();
  }
}
