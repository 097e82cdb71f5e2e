/** The gateway under chaos: its places are patched, then the product's own program runs. */
import { flushCompileCache } from 'node:module';
import { Socket } from 'node:net';
import type { Point } from '../../points.ts';
import { compiled } from '../compiled.ts';
import { isHit, orderFor, strike } from '../fault.ts';
import { type Amount, arm } from '../sockets.ts';

const amounts: Partial<Record<Point, Amount>> = {
  'request-unsent': 'none',
  'request-half': 'half',
  'request-sent': 'all',
  'answer-half': 'half',
  'answer-sent': 'all',
};

let link: Socket | undefined;
let writesRequest: Parameters<typeof arm>[1] | undefined;

const connect = Socket.prototype.connect as (this: Socket, ...args: unknown[]) => Socket;
Socket.prototype.connect = function (this: Socket, ...args: unknown[]): Socket {
  const [first] = args.flat() as [{ path?: string } | undefined];
  if (first?.path === process.env['RUNNER_SOCKET']) link = this;
  return connect.apply(this, args);
} as typeof Socket.prototype.connect;

const write = Socket.prototype.write as (this: Socket, ...args: unknown[]) => boolean;
Socket.prototype.write = function (this: Socket, ...args: unknown[]): boolean {
  if (writesRequest !== undefined && this === link) arm(this, writesRequest);
  return write.apply(this, args);
} as typeof Socket.prototype.write;

const { Connection } = await compiled<typeof import('../../../../protocol/connection.ts')>('protocol/connection.js');
const { request } = Connection.prototype;
Connection.prototype.request = function (operation, params, operationId, idempotencyKey): number {
  const order = orderFor('request-unsent', 'request-half', 'request-sent');
  if (order !== undefined && operationId !== undefined && isHit(order, params))
    writesRequest = { order, operationId, amount: amounts[order.point] ?? 'all' };
  try {
    return request.call(this, operation, params, operationId, idempotencyKey);
  } finally {
    writesRequest = undefined;
  }
};

const { Connections } = await compiled<typeof import('../../../../gateway/connections.ts')>('gateway/connections.js');
const { send } = Connections.prototype;
Connections.prototype.send = function (incoming, response, answer): void {
  const order = orderFor('answer-unsent', 'answer-half', 'answer-sent');
  if (order !== undefined && answer.status === 200 && incoming.headers['chaos-canary'] === order.canary) {
    const { operationId } = answer;
    const amount = amounts[order.point];
    if (amount === undefined) strike(order, operationId, () => incoming.socket.destroy());
    else arm(incoming.socket, { order, operationId, amount });
  }
  send.call(this, incoming, response, answer);
};

process.on('SIGUSR2', () => link?.destroy());
await compiled('gateway/main.js');
// Starts are most of what a round costs, and a process that is killed would leave no cache.
flushCompileCache();
