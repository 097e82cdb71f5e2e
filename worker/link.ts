/**
 * Purpose: the worker's end of the link to the gateway: one socket, one state machine, the requests on it.
 * Rights: none of its own. Everything that arrives is hostile input; protocol/ checks it.
 * Called by: listen.ts, with a socket whose peer has been checked.
 * Fails: closed. A violation, silence, or the loss of the socket ends every run that was asked for here.
 */
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import type { AuditQueue, LinkLoss, StopReason } from '../protocol/audit.ts';
import { Connection } from '../protocol/connection.ts';
import type { MessageOf, Outcome } from '../protocol/envelope.ts';
import { faultOf } from '../protocol/fault.ts';
import { creditStallMs } from '../protocol/limits.ts';
import { ProtocolViolation } from '../protocol/msgpack-check.ts';
import { operations } from '../protocol/operations/index.ts';
import { AnswerGate } from './answer-gate.ts';
import type { Dispatch } from './dispatch.ts';
import { Outputs } from './outputs.ts';

const tickMs = 1_000;
/** Bytes that may wait for the gateway before nothing more is read from it. */
const backlogBytesMax = 256 * 1024;
/** How long what was said has to get out at the end of the link, ms. */
const lastWordsMs = 200;

interface LinkDependencies {
  readonly instance: string;
  readonly dispatch: Dispatch;
  readonly audit: AuditQueue;
  readonly log: Logger;
}

/** One gateway's connection. */
export class Link {
  readonly #socket: Socket;
  readonly #connection: Connection;
  readonly #dependencies: LinkDependencies;
  readonly #underWay = new Map<number, { stop: AbortController; outputs: Outputs }>();
  readonly #answers: AnswerGate;
  readonly #closed = Promise.withResolvers<void>();
  readonly #timer: NodeJS.Timeout;
  readonly #startedAt = performance.now();
  #loss: LinkLoss | 'draining' = 'closed';
  #idle: (() => void)[] = [];

  constructor(socket: Socket, dependencies: LinkDependencies) {
    this.#socket = socket;
    this.#dependencies = dependencies;
    this.#connection = new Connection('worker', dependencies.instance, (bytes) => this.#send(bytes), {
      request: (request) => this.#begin(request),
      cancel: (id) => this.#underWay.get(id)?.stop.abort('cancelled' satisfies StopReason),
      credit: (id) => this.#underWay.get(id)?.outputs.flush(),
    });
    this.#answers = new AnswerGate(() => !socket.destroyed && socket.writableLength > backlogBytesMax);
    this.#timer = setInterval(() => this.#guarded(() => this.#tick()), tickMs);
    socket.on('data', (chunk) => this.#receive(chunk as Buffer));
    socket.on('drain', () => {
      socket.resume();
      this.#answers.open();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => this.#lost());
  }

  /** Settles when the link is gone. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  /** Resolves when nothing is under way; the caller bounds the wait. */
  async idle(): Promise<void> {
    if (this.#underWay.size === 0) return;
    await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /** Nothing new begins; what is under way goes on. */
  drain(): void {
    this.#connection.drain();
  }

  /**
   * Ends the link, since this process stops, and with it all that is under way on it. A reply that was given
   * still goes out, if the gateway takes it in soon: one that reads nothing would keep the link open for ever.
   */
  end(): void {
    this.#loss = 'draining';
    for (const { stop } of this.#underWay.values()) stop.abort('draining' satisfies StopReason);
    const timer = setTimeout(() => this.#socket.destroy(), lastWordsMs);
    this.#socket.once('close', () => clearTimeout(timer));
    this.#socket.destroySoon();
  }

  /**
   * Most messages ask for an answer. A gateway that takes none in is not read from either, until it does or its
   * silence ends the link: otherwise its pings alone would fill this process's memory.
   */
  #receive(chunk: Buffer): void {
    this.#guarded(() => this.#connection.receive(chunk));
    if (this.#socket.writableLength > backlogBytesMax) this.#socket.pause();
  }

  /** What is said within one turn (the last output and the reply) goes out in one write: each is a wake-up. */
  #send(bytes: Buffer): void {
    if (this.#socket.writableCorked === 0) {
      this.#socket.cork();
      setImmediate(() => this.#socket.uncork());
    }
    this.#socket.write(bytes);
  }

  #begin(request: MessageOf<'request'>): void {
    const { id } = request;
    const stop = new AbortController();
    const channel = {
      credit: () => this.#connection.creditOf(id),
      send: (stream: string, data: Uint8Array<ArrayBuffer>) => this.#connection.event(id, stream, data),
    };
    const outputs = new Outputs(channel, operations[request.operation].streams);
    this.#underWay.set(id, { stop, outputs });
    const room = () => this.#answers.enter();
    this.#dependencies.dispatch.call({ request, signal: stop.signal, outputs, room }).then(
      (outcome) => {
        this.#underWay.delete(id);
        if (this.#connection.state !== 'closed') this.#answer(id, outcome);
        this.#settle();
      },
      (error) => {
        this.#underWay.delete(id);
        this.#guarded(() => {
          throw error;
        });
        this.#settle();
      },
    );
  }

  /** What is too large for a frame is a bug here, not a reason to end everybody's link. */
  #answer(id: number, outcome: Outcome): void {
    try {
      this.#connection.reply(id, outcome);
    } catch (error) {
      this.#dependencies.log.error(faultOf(error), 'an answer cannot be sent');
      this.#connection.reply(id, { ok: false, error: 'internal' });
    }
  }

  #settle(): void {
    if (this.#underWay.size === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }

  #tick(): void {
    this.#connection.tick();
    const now = performance.now();
    for (const { outputs } of this.#underWay.values()) {
      if (outputs.stalledMs(now) > creditStallMs) throw new ProtocolViolation('silence');
    }
  }

  /** A violation ends the link; so does a bug, which can't be told from one safely. */
  #guarded(step: () => void): void {
    try {
      step();
    } catch (error) {
      const silence = error instanceof ProtocolViolation && error.message === 'silence';
      this.#loss = silence ? 'silence' : 'protocol';
      this.#dependencies.log.error(
        // The sentences of a violation are this program's own and hold nothing of a message.
        error instanceof ProtocolViolation ? { violation: error.message } : faultOf(error),
        'the link is given up',
      );
      this.#socket.destroy();
    }
  }

  #lost(): void {
    clearInterval(this.#timer);
    this.#connection.close();
    this.#answers.open();
    for (const { stop, outputs } of this.#underWay.values()) {
      outputs.discard();
      stop.abort('link_lost' satisfies StopReason);
    }
    const ms = Math.round(performance.now() - this.#startedAt);
    const status = this.#loss === 'draining' ? 'ok' : 'error';
    this.#dependencies.audit.add({ action: 'link.lost', ms, status, reason: this.#loss });
    this.#closed.resolve();
  }
}
