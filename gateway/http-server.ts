import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import type { AuditQueue } from '../protocol/audit.ts';
import type { ErrorCode } from '../protocol/errors.ts';
import {
  connectionsMax,
  headerBytesMax,
  headersTimeoutMs,
  keepAliveTimeoutMs,
  requestTimeoutMs,
} from '../protocol/limits.ts';
import { errorAnswer, rawAnswer } from './answer.ts';
import { type Authentication, headerValues } from './auth.ts';
import type { Connections } from './connections.ts';
import { StartError } from './start-error.ts';

/** What the server needs from the rest of the gateway. */
export interface HttpServerParts {
  readonly authentication: Authentication;
  readonly connections: Connections;
  readonly audit: AuditQueue;
  /** True when GET /healthz is to say so. */
  readonly healthy: () => boolean;
}

/** How long a client may take, ms. */
export interface HttpTimeouts {
  readonly headersMs: number;
  readonly requestMs: number;
  readonly keepAliveMs: number;
  /** How often the two former are looked at. */
  readonly checkMs: number;
}

/** The service's own; tests have shorter ones. */
export const httpTimeouts: HttpTimeouts = {
  headersMs: headersTimeoutMs,
  requestMs: requestTimeoutMs,
  keepAliveMs: keepAliveTimeoutMs,
  checkMs: 1_000,
};

const isHealthCheck = ({ method, url }: IncomingMessage): boolean =>
  method === 'GET' && (url === '/healthz' || url?.startsWith('/healthz?') === true);

/**
 * Makes the HTTP server. Every request is authenticated here, from its parsed head, before any routing or
 * framework sees it: no spelling of a path and no method can be a way around it. Only `GET /healthz` is open.
 * @param handler gets the requests that were let in
 */
export const makeHttpServer = (
  parts: HttpServerParts,
  handler: (request: IncomingMessage, response: ServerResponse) => void,
  timeouts: HttpTimeouts = httpTimeouts,
): Server => {
  const { authentication, connections, audit, healthy } = parts;

  const authenticated = (request: IncomingMessage): boolean => {
    if (authentication.accepts(request)) return true;
    audit.add({ action: 'auth.denied', ms: 0, status: 'denied', reason: 'unauthenticated' });
    return false;
  };

  /** Answers what needs no routing; true when the request is to go on. */
  const admit = (request: IncomingMessage, response: ServerResponse): boolean => {
    const refuse = (code: ErrorCode): false => {
      connections.send(request, response, errorAnswer(code));
      return false;
    };
    connections.asked(request, response);
    if (isHealthCheck(request)) {
      connections.send(request, response, { status: healthy() ? 204 : 503, body: undefined });
      return false;
    }
    if (!authenticated(request)) return refuse('unauthenticated');
    const hosts = headerValues(request, 'host').length;
    if (hosts > 1 || (hosts === 0 && request.httpVersion === '1.1')) return refuse('bad_request');
    // The body is JSON whatever its type is said to be; the framework would refuse a malformed one in its own words.
    request.headers['content-type'] = 'application/json';
    return true;
  };

  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    if (admit(request, response)) handler(request, response);
  };

  const server = createServer({
    headersTimeout: timeouts.headersMs,
    requestTimeout: timeouts.requestMs,
    keepAliveTimeout: timeouts.keepAliveMs,
    connectionsCheckingInterval: timeouts.checkMs,
    maxHeaderSize: headerBytesMax,
    insecureHTTPParser: false,
    // Node would answer in its own shape, and before authentication.
    requireHostHeader: false,
  });
  server.maxConnections = connectionsMax;
  // The head's size is the limit. Beyond a number of fields Node would hide them from us while its parser obeys them.
  server.maxHeadersCount = 0;
  server.on('connection', (socket) => connections.opened(socket));
  server.on('request', serve);
  // The body reader says 100 when it begins to read.
  server.on('checkContinue', serve);
  server.on('checkExpectation', (request, response) => {
    if (admit(request, response)) connections.send(request, response, errorAnswer('expectation_failed'));
  });
  // There is no 'upgrade' listener: Node then ignores the Upgrade header and such a request is like any other.
  server.on('connect', (request, stream) => {
    connections.refuse(stream as Socket, rawAnswer(authenticated(request) ? 'route_not_found' : 'unauthenticated'));
  });
  return server;
};

const codeOfClientError = (error: NodeJS.ErrnoException): ErrorCode => {
  if (error.code === 'HPE_HEADER_OVERFLOW') return 'headers_too_large';
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'request_timeout';
  return 'bad_request';
};

/** Answers what is not HTTP, too large or too slow. Nothing of it is echoed. */
export const answerClientError = (connections: Connections, error: NodeJS.ErrnoException, socket: Socket): void => {
  if (error.code === 'ECONNRESET') socket.destroy();
  else connections.refuse(socket, rawAnswer(codeOfClientError(error)));
};

const sentences: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the port is taken by another process',
  EACCES: 'this process may not listen on that port',
  EADDRNOTAVAIL: 'this machine has no such address',
};

/**
 * Begins to listen; resolves with the address that was really bound.
 * @throws StartError
 */
export const listen = async (server: Server, address: { host: string | undefined; port: number }): Promise<string> => {
  const { host, port } = address;
  try {
    // As many as may be open may come at once; with a shorter queue the kernel would make some of them try again.
    server.listen({ port, backlog: connectionsMax, ...(host === undefined ? {} : { host }) });
    await once(server, 'listening');
  } catch (error) {
    const why = sentences[(error as NodeJS.ErrnoException).code ?? ''] ?? 'the address cannot be used';
    throw new StartError(`RUNNER_ADDR cannot be listened on: ${why}.`);
  }
  const bound = server.address();
  if (bound === null || typeof bound === 'string') throw new Error('a server without an address');
  return bound.family === 'IPv6' ? `[${bound.address}]:${bound.port}` : `${bound.address}:${bound.port}`;
};

/**
 * Takes no new connections. Not the HTTP server's own close(), which also ends the idle ones at once: a request
 * that is on its way on such a connection would be reset, and its caller could not know what became of it.
 */
export const stopListening = (server: Server): void => {
  NetServer.prototype.close.call(server);
};
