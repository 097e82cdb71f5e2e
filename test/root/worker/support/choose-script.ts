/** Chooses a place for the socket, removes what was made for it, and says what it was. */
import { lstatSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { chooseSocket } from '../../../../deploy/socket.ts';

const usual = process.argv[2] ?? '';
const socket = chooseSocket(usual, 19_998);
const { mode, uid, gid } = lstatSync(dirname(socket));
if (socket !== usual && dirname(dirname(socket)) === '/tmp') rmSync(dirname(socket), { recursive: true });
process.stdout.write(JSON.stringify({ socket, mode: `${mode.toString(8)} ${uid}:${gid}` }));
