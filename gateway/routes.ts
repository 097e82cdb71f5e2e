import type { Server } from 'node:http';
import fastify, { type FastifyReply, type FastifyRequest } from 'fastify';
import { faultOf } from '../protocol/fault.ts';
import type { Operation } from '../protocol/operation.ts';
import { type OperationName, operationNames } from '../protocol/operations/index.ts';
import { errorAnswer } from './answer.ts';
import { answerClientError, type HttpServerParts, type HttpTimeouts, makeHttpServer } from './http-server.ts';
import { type ServeParts, serveOperation } from './serve-operation.ts';
import { serveStream } from './serve-stream.ts';

/** What the HTTP side is made of. */
export interface RouteParts extends ServeParts, HttpServerParts {
  readonly table: Readonly<Record<OperationName, Operation>>;
  readonly timeouts?: HttpTimeouts;
}

/**
 * Makes the HTTP server with one route for each row of the operation table; not yet listening.
 * The framework routes and nothing else: bodies are read and answers written by this service's own code.
 */
export const makeServer = async (parts: RouteParts): Promise<Server> => {
  const { connections, log, table } = parts;

  const answerNotFound = (request: FastifyRequest, reply: FastifyReply): void => {
    reply.hijack();
    connections.send(request.raw, reply.raw, errorAnswer('route_not_found'));
    log.debug({ method: request.method, status: 404 }, 'answered');
  };

  const app = fastify({
    logger: false,
    exposeHeadRoutes: false,
    serverFactory: (handler) => makeHttpServer(parts, handler, parts.timeouts),
    clientErrorHandler: (error, socket) => answerClientError(connections, error, socket),
    // A path that is not even well-formed names no route.
    frameworkErrors: (_error, request, reply) => answerNotFound(request, reply),
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));
  app.setNotFoundHandler(answerNotFound);
  app.setErrorHandler((error, request, reply) => {
    log.error(faultOf(error), 'the framework failed');
    reply.hijack();
    connections.send(request.raw, reply.raw, errorAnswer('internal'));
  });
  for (const name of operationNames) {
    const row = table[name];
    if (row.events === true) {
      app.get(row.route, (request, reply) => {
        reply.hijack();
        void serveStream(parts, request.raw, reply.raw);
      });
      continue;
    }
    app.post(row.route, (request, reply) => {
      reply.hijack();
      void serveOperation(parts, name, row, request.raw, reply.raw);
    });
  }
  await app.ready();
  return app.server;
};
