import { Connection, type ConnectionEvents } from '../../../../protocol/connection.ts';
import type { Message, MessageOf } from '../../../../protocol/envelope.ts';
import { encodeFrame, FrameDecoder } from '../../../../protocol/frame.ts';

export type Role = 'gateway' | 'worker';

export const instance = '0b0e6b4e-5b3f-4c1e-9d0a-6d0c6a3b2f11';
export const limits = { requestsInFlight: 512, eventCredit: 256 * 1024 };
export const hello = { kind: 'hello', version: 1, instance, limits };
export const aRequest = (id: number): object => ({
  kind: 'request',
  id,
  operation: 'exec',
  operationId: '01890a5d-ac96-7cc0-8000-000000000000',
  params: { user: 1, tool: 'git' },
});
export const done = { ok: true, result: null, streams: {} } as const;

/** A clock that only moves when told. */
export class Clock {
  now = 1000;
  readonly read = (): number => this.now;
}

/** One end with what it said and what it was told; the other end is the test. */
export class Bench {
  readonly clock = new Clock();
  readonly said: Message[] = [];
  readonly told: (readonly [keyof ConnectionEvents, unknown?])[] = [];
  readonly connection: Connection;

  constructor(role: Role) {
    const decoder = new FrameDecoder();
    this.connection = new Connection(
      role,
      instance,
      (bytes) => this.said.push(...([...decoder.push(bytes)] as Message[])),
      {
        ready: () => this.told.push(['ready']),
        request: (request) => this.told.push(['request', request.id]),
        cancel: (id) => this.told.push(['cancel', id]),
        credit: (id) => this.told.push(['credit', id]),
        event: (event) => this.told.push(['event', event.id]),
        reply: (id) => this.told.push(['reply', id]),
      },
      this.clock.read,
    );
  }

  hear(...messages: readonly object[]): void {
    for (const message of messages) this.connection.receive(encodeFrame(message));
  }

  kinds(): Message['kind'][] {
    return this.said.map(({ kind }) => kind);
  }

  saidOf<Kind extends Message['kind']>(kind: Kind): MessageOf<Kind>[] {
    return this.said.filter((message): message is MessageOf<Kind> => message.kind === kind);
  }
}

/** A bench that has been greeted, with `requests` under way at it (ids from 1). */
export const readyBench = (role: Role, requests = 0): Bench => {
  const bench = new Bench(role);
  bench.hear(hello);
  for (let id = 1; id <= requests; id += 1)
    if (role === 'worker') bench.hear(aRequest(id));
    else bench.connection.request('exec', { user: 1, tool: 'git' }, undefined);
  return bench;
};
