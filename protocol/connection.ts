import { type Message, type MessageOf, message, type Outcome, protocolVersion } from './envelope.ts';
import { encodeFrame, FrameDecoder } from './frame.ts';
import {
  eventBytesMax,
  eventCreditBytes,
  heartbeatIntervalMs,
  heartbeatSilenceMs,
  helloTimeoutMs,
  requestsInFlightMax,
} from './limits.ts';
import { ProtocolViolation } from './msgpack-check.ts';
import type { OperationName } from './operations/index.ts';

/** hello: nothing but `hello` may come. ready: work. draining: what is under way goes on, nothing new begins. */
export type ConnectionState = 'hello' | 'ready' | 'draining' | 'closed';

/** What a side needs to be told; each is called from `receive`, in the order of arrival. */
export interface ConnectionEvents {
  ready?(): void;
  request?(request: MessageOf<'request'>): void;
  cancel?(id: number): void;
  /** More events of this request may go out. */
  credit?(id: number): void;
  event?(event: MessageOf<'event'>): void;
  reply?(id: number, outcome: Outcome): void;
}

/** The kinds each side may hear once it is ready; anything else ends the link. */
const legal: Record<'gateway' | 'worker', ReadonlySet<Message['kind']>> = {
  gateway: new Set(['reply', 'event', 'ping', 'pong']),
  worker: new Set(['request', 'credit', 'cancel', 'ping', 'pong']),
};

/**
 * One end of the link as a state machine without I/O: bytes in, bytes out, time as an argument. Both
 * processes drive one of these with a socket and a timer; what is legal when is decided here alone.
 * Source: specification, Protocol, "Transport".
 */
export class Connection {
  readonly #role: 'gateway' | 'worker';
  readonly #send: (bytes: Buffer) => void;
  readonly #events: ConnectionEvents;
  readonly #now: () => number;
  readonly #decoder = new FrameDecoder();
  /** Requests under way, and how many event bytes may still go out for each (the worker's side counts). */
  readonly #underWay = new Map<number, { credit: number }>();
  #state: ConnectionState = 'hello';
  #lastId = 0;
  #draining = false;
  readonly #opened: number;
  #lastHeard: number;
  #lastSaid: number;
  #requestsMax = 0;
  #initialCredit = 0;

  /** Says hello at once. @param now a monotonic clock, ms */
  constructor(
    role: 'gateway' | 'worker',
    instance: string,
    send: (bytes: Buffer) => void,
    events: ConnectionEvents,
    now: () => number = () => performance.now(),
  ) {
    this.#role = role;
    this.#send = send;
    this.#events = events;
    this.#now = now;
    this.#opened = now();
    this.#lastHeard = now();
    this.#lastSaid = now();
    const limits = { requestsInFlight: requestsInFlightMax, eventCredit: eventCreditBytes };
    this.#say({ kind: 'hello', version: protocolVersion, instance, limits });
  }

  get state(): ConnectionState {
    return this.#state;
  }

  /** Requests that have no reply yet. */
  get underWay(): number {
    return this.#underWay.size;
  }

  /** True when one more request would be more than the worker takes. */
  get full(): boolean {
    return this.#underWay.size >= this.#requestsMax;
  }

  /**
   * Takes bytes from the other side.
   * @throws ProtocolViolation: the caller ends the link
   */
  receive(chunk: Buffer): void {
    if (this.#state === 'closed') return;
    this.#lastHeard = this.#now();
    for (const raw of this.#decoder.push(chunk)) {
      const parsed = message.safeParse(raw);
      if (!parsed.success) throw new ProtocolViolation('a message is not one of the known shapes');
      this.#take(parsed.data);
      // Before the decoder is asked for the next one: what follows is nobody's any more, bad or not.
      if (this.state === 'closed') return;
    }
  }

  /**
   * Keeps the link alive; called about once a second.
   * @throws ProtocolViolation after too long a silence
   */
  tick(): void {
    if (this.#state === 'closed') return;
    const now = this.#now();
    // A hello that trickles in is no hello: counted from the start, not from the last byte.
    if (this.#state === 'hello' && now - this.#opened > helloTimeoutMs) throw new ProtocolViolation('no hello');
    if (now - this.#lastHeard > heartbeatSilenceMs) throw new ProtocolViolation('silence');
    if (now - this.#lastSaid >= heartbeatIntervalMs) this.#say({ kind: 'ping' });
  }

  /** Nothing new begins from here on; what is under way goes on. */
  drain(): void {
    this.#draining = true;
    if (this.#state === 'ready') this.#state = 'draining';
  }

  /** The socket is gone. */
  close(): void {
    this.#state = 'closed';
    this.#underWay.clear();
  }

  /** Gateway: sends a request and returns its id. The caller has looked at `state` and `full`. */
  request(
    operation: OperationName,
    params: unknown,
    operationId: string | undefined,
    idempotencyKey?: string | undefined,
  ): number {
    if (this.#role !== 'gateway' || this.#state !== 'ready' || this.full) throw new Error('no request can be sent now');
    const id = this.#lastId + 1;
    const named = operationId === undefined ? {} : { operationId };
    const keyed = idempotencyKey === undefined ? {} : { idempotencyKey };
    this.#say({ kind: 'request', id, operation, params, ...named, ...keyed });
    this.#lastId = id;
    this.#underWay.set(id, { credit: 0 });
    return id;
  }

  /** Gateway: nobody waits for this request any more; its reply still comes. */
  cancel(id: number): void {
    if (this.#underWay.has(id)) this.#say({ kind: 'cancel', id });
  }

  /** Gateway: `bytes` of events were taken in, as many more may come. */
  grant(id: number, bytes: number): void {
    if (this.#underWay.has(id)) this.#say({ kind: 'credit', id, bytes });
  }

  /** Worker: how many event bytes may go out for a request now; 0 for one that is not under way. */
  creditOf(id: number): number {
    return this.#underWay.get(id)?.credit ?? 0;
  }

  /** Worker: sends output of a request, within its credit. */
  event(id: number, stream: string, data: Uint8Array<ArrayBuffer>): void {
    const entry = this.#underWay.get(id);
    if (!entry || data.length > entry.credit) throw new Error('an event exceeds its credit');
    if (data.length < 1 || data.length > eventBytesMax) throw new Error('an event of a length that is not legal');
    entry.credit -= data.length;
    this.#say({ kind: 'event', id, stream, data });
  }

  /** Worker: answers a request; after this its id is spent. */
  reply(id: number, outcome: Outcome): void {
    if (!this.#underWay.has(id)) throw new Error('a reply without its request');
    // In this order: after one that is too large for a frame the caller can still answer `internal`.
    this.#say({ kind: 'reply', id, outcome });
    this.#underWay.delete(id);
  }

  #say(said: Message): void {
    if (this.#state === 'closed') return;
    this.#lastSaid = this.#now();
    this.#send(encodeFrame(said));
  }

  #take(heard: Message): void {
    if (this.#state === 'hello') {
      if (heard.kind !== 'hello') throw new ProtocolViolation('the first message is not a hello');
      this.#greet(heard);
      return;
    }
    if (!legal[this.#role].has(heard.kind)) throw new ProtocolViolation(`a ${heard.kind} is not legal here`);
    switch (heard.kind) {
      case 'ping':
        this.#say({ kind: 'pong' });
        break;
      case 'request':
        this.#takeRequest(heard);
        break;
      case 'credit':
        this.#takeCredit(heard);
        break;
      case 'cancel':
        if (heard.id > this.#lastId) throw new ProtocolViolation('a cancel for a request that was never made');
        if (this.#underWay.has(heard.id)) this.#events.cancel?.(heard.id);
        break;
      case 'event':
        if (!this.#underWay.has(heard.id)) throw new ProtocolViolation('an event without its request');
        this.#events.event?.(heard);
        break;
      case 'reply':
        if (!this.#underWay.delete(heard.id)) throw new ProtocolViolation('a reply without its request');
        this.#events.reply?.(heard.id, heard.outcome);
        break;
    }
  }

  #greet(hello: MessageOf<'hello'>): void {
    if (hello.version !== protocolVersion) throw new ProtocolViolation('the versions differ');
    this.#requestsMax = Math.min(requestsInFlightMax, hello.limits.requestsInFlight);
    this.#initialCredit = Math.min(eventCreditBytes, hello.limits.eventCredit);
    this.#state = this.#draining ? 'draining' : 'ready';
    this.#events.ready?.();
  }

  #takeRequest(heard: MessageOf<'request'>): void {
    if (heard.id <= this.#lastId) throw new ProtocolViolation('an id is used again');
    if (this.full) throw new ProtocolViolation('more requests than this side takes');
    this.#lastId = heard.id;
    this.#underWay.set(heard.id, { credit: this.#initialCredit });
    this.#events.request?.(heard);
  }

  /** A credit may cross the reply on its way: for a spent id it means nothing, for a future one it is a lie. */
  #takeCredit(heard: MessageOf<'credit'>): void {
    if (heard.id > this.#lastId) throw new ProtocolViolation('a credit for a request that was never made');
    const entry = this.#underWay.get(heard.id);
    if (!entry) return;
    entry.credit += heard.bytes;
    if (entry.credit > this.#initialCredit) throw new ProtocolViolation('more credit than was used');
    this.#events.credit?.(heard.id);
  }
}
