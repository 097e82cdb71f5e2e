import { spawn } from 'node:child_process';
import type { IncomingMessage } from 'node:http';
import { plainGitEnvironment } from './bare-repository.ts';

/** What a CGI program answers. */
export interface CgiAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

const parse = (output: Buffer): CgiAnswer => {
  const end = output.indexOf('\r\n\r\n');
  if (end < 0) throw new Error(`git http-backend answered no headers: ${output.toString('latin1')}`);
  const lines = output.subarray(0, end).toString('latin1').split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as [string, string];
    }),
  );
  const { status = '200', ...rest } = headers;
  return { status: Number.parseInt(status, 10), headers: rest, body: output.subarray(end + 4) };
};

/**
 * Runs `git http-backend` for one request, as a web server would (git-http-backend(1), RFC 3875).
 * @param top the folder whose repositories it serves
 */
export const gitHttpBackend = (top: string, request: IncomingMessage): Promise<CgiAnswer> => {
  const [path = '', query = ''] = (request.url ?? '').split('?');
  const { headers } = request;
  const variables: Readonly<Record<string, string | string[] | undefined>> = {
    GIT_PROJECT_ROOT: top,
    GIT_HTTP_EXPORT_ALL: '1',
    GATEWAY_INTERFACE: 'CGI/1.1',
    REQUEST_METHOD: request.method,
    PATH_INFO: decodeURIComponent(path),
    QUERY_STRING: query,
    REMOTE_ADDR: '127.0.0.1',
    CONTENT_TYPE: headers['content-type'],
    CONTENT_LENGTH: headers['content-length'],
    HTTP_CONTENT_ENCODING: headers['content-encoding'],
    GIT_PROTOCOL: headers['git-protocol'],
  };
  const given = Object.entries(variables).filter(([, value]) => value !== undefined);
  const backend = spawn('git', ['http-backend'], {
    env: { ...plainGitEnvironment, ...Object.fromEntries(given) },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  // It doesn't read what it has no use for.
  backend.stdin.on('error', () => undefined);
  request.pipe(backend.stdin);
  request.once('close', () => {
    if (!request.complete) backend.kill();
  });
  const chunks: Buffer[] = [];
  backend.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  return new Promise((resolve, reject) => {
    backend.once('error', reject);
    backend.once('close', () => {
      try {
        resolve(parse(Buffer.concat(chunks)));
      } catch (error) {
        reject(error);
      }
    });
  });
};
