import { randomUUID } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import type { Message, MessageOf } from '../../protocol/envelope.ts';
import { encodeFrame, FrameDecoder } from '../../protocol/frame.ts';
import { mintOperationId } from '../../protocol/operation-id.ts';
import { eventually } from './wait.ts';

interface Identity {
  readonly uid?: number;
  readonly gid?: number;
}

/** The hello of a gateway that behaves. */
export const goodHello = (): MessageOf<'hello'> => ({
  kind: 'hello',
  version: 1,
  instance: randomUUID(),
  limits: { requestsInFlight: 512, eventCredit: 262_144 },
});

/**
 * Connects as somebody else: the kernel tells the listener (SO_PEERCRED), and checks the way to the socket for, the
 * effective ids at the moment of connect(2), which net.connect calls at once for a path.
 */
const connectAs = (path: string, { uid = 19_999, gid = 19_999 }: Identity): Socket => {
  if (!process.seteuid || !process.setegid) throw new Error('this test must run in a process of its own');
  process.setegid(gid);
  process.seteuid(uid);
  try {
    return connect(path);
  } finally {
    process.seteuid(0);
    process.setegid(0);
  }
};

/** Somebody with the gateway's uid (or another) who says to the worker whatever the test wants. */
export class FalseGateway {
  static readonly #all = new Set<FalseGateway>();
  readonly heard: Message[] = [];
  readonly socket: Socket;
  #bytesHeard = 0;
  #connected = false;
  #closed = false;

  constructor(path: string, identity: Identity = {}) {
    this.socket = connectAs(path, identity);
    FalseGateway.#all.add(this);
    const decoder = new FrameDecoder();
    this.socket.on('connect', () => {
      this.#connected = true;
    });
    this.socket.on('error', () => undefined);
    this.socket.on('data', (chunk: Buffer) => {
      this.#bytesHeard += chunk.length;
      for (const message of decoder.push(chunk)) this.heard.push(message as Message);
    });
    this.socket.once('close', () => {
      this.#closed = true;
      FalseGateway.#all.delete(this);
    });
  }

  /** Ends what a failed test left connected: there is one gateway at a time. */
  static async leaveAll(): Promise<void> {
    for (const gateway of FalseGateway.#all) await gateway.leave();
  }

  /** One that the worker has greeted. It tries again while an earlier one is not yet forgotten, as a gateway does. */
  static async greeted(path: string): Promise<FalseGateway> {
    return eventually(
      'a greeting of the worker',
      async () => {
        const gateway = new FalseGateway(path);
        await eventually('a hello or a refusal', () => gateway.heard[0]?.kind === 'hello' || gateway.closed);
        return gateway.closed ? undefined : gateway;
      },
      10_000,
    );
  }

  /** One that is linked: both have said hello. */
  static async linked(path: string): Promise<FalseGateway> {
    return (await FalseGateway.greeted(path)).say(goodHello());
  }

  get connected(): boolean {
    return this.#connected;
  }

  get closed(): boolean {
    return this.#closed;
  }

  get bytesHeard(): number {
    return this.#bytesHeard;
  }

  /** Says a message, whether it is one or not. */
  say(...messages: readonly object[]): this {
    return this.bytes(...messages.map((message) => encodeFrame(message)));
  }

  bytes(...parts: readonly Uint8Array[]): this {
    for (const part of parts) this.socket.write(part);
    return this;
  }

  /** A request of exec as a gateway would make it; `more` replaces parts of the message. */
  exec(id: number, params: object, more: object = {}): this {
    return this.say({ kind: 'request', id, operation: 'exec', operationId: mintOperationId(), params, ...more });
  }

  /** Takes nothing in any more, as if its reader had stopped. */
  stopReading(): void {
    this.socket.pause();
  }

  /** Waits for the reply to a request. */
  async reply(id: number, limitMs = 15_000): Promise<MessageOf<'reply'>> {
    const found = (message: Message): message is MessageOf<'reply'> => message.kind === 'reply' && message.id === id;
    return eventually(`the reply to ${id}`, () => this.heard.find(found), limitMs);
  }

  /** Waits for the end of the connection by the other side. */
  async ended(limitMs = 5_000): Promise<void> {
    await eventually('the worker ends the link', () => this.#closed, limitMs);
  }

  /** Ends the connection from this side. */
  async leave(): Promise<void> {
    this.socket.destroy();
    await eventually('it is gone', () => this.#closed);
  }
}
