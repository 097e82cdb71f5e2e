/**
 * Purpose: the worker's end of the socket pair to init.
 * Rights: none of its own; the descriptor is init's.
 * Called by: main.ts, when everything else is ready.
 * Fails: closed. When init is gone nobody reaps or restarts, so the worker stops at once.
 */
import { Socket } from 'node:net';

/** The descriptor that init hands over, named on the command line. */
const channelArgument = '--init-channel=3';
const channelDescriptor = 3;

/** What init can say, and what can be said to it. One byte each. */
export interface InitChannel {
  ready(): void;
}

/**
 * Opens the channel to init, if this process was started by it.
 * @param drain init asks for a graceful stop
 * @param lost init is gone, so nobody would restart or reap for us: stop at once
 */
export const openInitChannel = (
  args: readonly string[],
  drain: () => void,
  lost: () => void,
): InitChannel | undefined => {
  if (!args.includes(channelArgument)) return undefined;
  const socket = new Socket({ fd: channelDescriptor });
  socket.on('data', (bytes) => {
    if (bytes.includes('D')) drain();
  });
  socket.on('error', () => undefined);
  socket.on('close', lost);
  return { ready: () => void socket.write('R') };
};
