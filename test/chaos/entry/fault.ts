import { readdirSync, readFileSync } from 'node:fs';
import { Control, type Order } from '../control.ts';
import type { Point } from '../points.ts';

const control = new Control(process.env['CHAOS_FOLDER'] ?? '');
// Nothing that this process starts is to know of it.
delete process.env['CHAOS_FOLDER'];

/** The order, if it is for one of these points and not done yet. */
export const orderFor = (...here: readonly Point[]): Order | undefined => {
  const { order } = control;
  return order !== undefined && here.includes(order.point) && control.struck(order.round) === undefined
    ? order
    : undefined;
};

/** True if a request is the one that the order is for. */
export const isHit = ({ canary }: Order, params: unknown): boolean => JSON.stringify(params).includes(canary);

/** The worker's spawner: its child of that name. */
const spawnerPid = (): number => {
  for (const thread of readdirSync('/proc/self/task')) {
    for (const pid of readFileSync(`/proc/self/task/${thread}/children`, 'latin1').split(' ').filter(Boolean)) {
      if (readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('\0spawner\0')) return Number(pid);
    }
  }
  throw new Error('there is no spawner to be killed');
};

/** Carries an order out, if nobody else has. `cut` ends the connection that is struck. True if it was done. */
export const strike = (order: Order, operationId: string | undefined, cut: () => void): boolean => {
  if (!control.claim(order, operationId)) return false;
  // One's own SIGKILL: nothing of this process comes after this line.
  if (order.fault === 'kill') process.kill(process.pid, 'SIGKILL');
  else if (order.fault === 'kill-spawner') process.kill(spawnerPid(), 'SIGKILL');
  else cut();
  return true;
};
