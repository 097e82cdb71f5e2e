import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';

/** A place that nobody may reach: takes every connection on every address of this machine, and counts. */
export class CountingServer {
  readonly port: number;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #connections = 0;
  #bytes = 0;

  private constructor(server: Server) {
    this.#server = server;
    this.port = (server.address() as AddressInfo).port;
    server.on('connection', (socket) => {
      this.#connections += 1;
      this.#sockets.add(socket);
      socket.on('data', (chunk) => {
        this.#bytes += chunk.length;
      });
      socket.on('error', () => undefined);
      socket.on('close', () => this.#sockets.delete(socket));
      // Whoever waits for a word from here gets the end of it, and goes on.
      socket.end();
    });
  }

  static start(): Promise<CountingServer> {
    const server = createServer({ allowHalfOpen: true });
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(0, () => resolve(new CountingServer(server)));
    });
  }

  /** What arrived since the start, or since it was last forgotten. */
  get reached(): { readonly connections: number; readonly bytes: number } {
    return { connections: this.#connections, bytes: this.#bytes };
  }

  /** Starts counting anew: after a test has shown that something would have reached it. */
  forget(): void {
    this.#connections = 0;
    this.#bytes = 0;
  }

  stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }
}

/** What a counting server says that was never reached. */
export const unreached = { connections: 0, bytes: 0 } as const;
