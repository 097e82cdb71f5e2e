/** The worker under chaos: its places are patched, then the product's own program runs. */
import { flushCompileCache } from 'node:module';
import { Socket } from 'node:net';
import type { Point } from '../../points.ts';
import { compiled } from '../compiled.ts';
import { isHit, orderFor, strike } from '../fault.ts';
import { type Amount, arm } from '../sockets.ts';

const amounts: Partial<Record<Point, Amount>> = {
  'plan-half': 'half',
  'plan-sent': 'all',
  'reply-unsent': 'none',
  'reply-half': 'half',
  'reply-sent': 'all',
};

/** The gateway's connection. */
let link: Socket | undefined;
/** The requests that the order is for, by their number on the link, and those of them that are on record. */
const hits = new Map<number, string>();
const onRecord = new Set<string>();
let canary = '';
let replies: Parameters<typeof arm>[1] | undefined;

const cutLink = (): void => void link?.destroy();
/** True for the socket that a server accepted: the worker has one server. */
const isAccepted = (socket: Socket): boolean => (socket as { server?: unknown }).server != null;
const isTarget = (operationId: string): boolean => [...hits.values()].includes(operationId);

const write = Socket.prototype.write as (this: Socket, ...args: unknown[]) => boolean;
Socket.prototype.write = function (this: Socket, ...args: unknown[]): boolean {
  const [bytes] = args;
  if (isAccepted(this)) {
    link = this;
    if (replies !== undefined && Buffer.isBuffer(bytes)) arm(this, { ...replies, lastBytes: bytes.length });
  } else {
    const order = orderFor('plan-half', 'plan-sent');
    // What goes out with the canary in it to somebody else than the gateway is the plan.
    if (order !== undefined && Buffer.isBuffer(bytes) && bytes.includes(order.canary))
      arm(this, { order, operationId: [...onRecord].at(-1), amount: amounts[order.point] ?? 'all' });
  }
  return write.apply(this, args);
} as typeof Socket.prototype.write;

const { Dispatch } = await compiled<typeof import('../../../../worker/dispatch.ts')>('worker/dispatch.js');
const { call } = Dispatch.prototype;
Dispatch.prototype.call = function (given) {
  const { id, operationId, params } = given.request;
  const order = orderFor(
    'received',
    'record-asked',
    'recorded',
    'plan-half',
    'plan-sent',
    'done',
    'finish-asked',
    'finished',
    'reply-unsent',
    'reply-half',
    'reply-sent',
  );
  // Numbers begin anew with each link.
  hits.delete(id);
  if (order !== undefined && operationId !== undefined && isHit(order, params)) {
    if (canary !== order.canary) {
      hits.clear();
      onRecord.clear();
      canary = order.canary;
    }
    hits.set(id, operationId);
    if (order.point === 'received') strike(order, operationId, cutLink);
  }
  return call.call(this, given);
};

const { Ledger } = await compiled<typeof import('../../../../worker/ledger/ledger.ts')>('worker/ledger/ledger.js');
const { begin, finish } = Ledger.prototype;
Ledger.prototype.begin = async function (record): Promise<void> {
  const { operationId } = record;
  const asked = begin.call(this, record);
  const order = isTarget(operationId) ? orderFor('record-asked', 'recorded') : undefined;
  if (order?.point === 'record-asked') strike(order, operationId, cutLink);
  await asked;
  if (isTarget(operationId)) onRecord.add(operationId);
  if (order?.point === 'recorded') strike(order, operationId, cutLink);
};
Ledger.prototype.finish = async function (end): Promise<void> {
  const { operationId } = end;
  const order = isTarget(operationId) ? orderFor('done', 'finish-asked', 'finished') : undefined;
  if (order?.point === 'done') strike(order, operationId, cutLink);
  const asked = finish.call(this, end);
  if (order?.point === 'finish-asked') strike(order, operationId, cutLink);
  await asked;
  if (order?.point === 'finished') strike(order, operationId, cutLink);
};

const { Connection } = await compiled<typeof import('../../../../protocol/connection.ts')>('protocol/connection.js');
const { reply } = Connection.prototype;
Connection.prototype.reply = function (id, outcome): void {
  const operationId = hits.get(id);
  const order = orderFor('reply-unsent', 'reply-half', 'reply-sent');
  if (order !== undefined && operationId !== undefined && onRecord.has(operationId))
    replies = { order, operationId, amount: amounts[order.point] ?? 'all' };
  try {
    reply.call(this, id, outcome);
  } finally {
    replies = undefined;
  }
};

process.on('SIGUSR2', cutLink);
await compiled('worker/main.js');
// Starts are most of what a round costs, and a process that is killed would leave no cache.
flushCompileCache();
