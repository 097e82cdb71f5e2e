import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Tokens } from './config.ts';

const digestOf = (secret: Buffer): Buffer => hash('sha256', secret, 'buffer');

/**
 * The values of a header, as they came. Node joins or drops repeated ones in `headers`, and a repeated
 * Authorization or Host is how two parsers are made to disagree.
 */
export const headerValues = (request: IncomingMessage, name: string): readonly string[] => {
  const { rawHeaders } = request;
  const values: string[] = [];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2)
    if (rawHeaders[index]?.toLowerCase() === name) values.push(rawHeaders[index + 1] ?? '');
  return values;
};

/** Decides whether a request carries a service token. */
export class Authentication {
  readonly #configured: boolean;
  readonly #current: Buffer;
  readonly #previous: Buffer;

  constructor(tokens: Tokens) {
    // What is not configured is compared with a random digest, so that every request takes the same path.
    const expected = (token: string | undefined) =>
      token === undefined ? randomBytes(32) : digestOf(Buffer.from(token));
    this.#configured = tokens.current !== undefined;
    this.#current = expected(tokens.current);
    this.#previous = expected(tokens.previous);
  }

  /**
   * True for exactly one Authorization header with the scheme `Bearer` (in any case, RFC 9110, 11.1) and a valid
   * token. Digests are compared, both always: the time taken tells neither a token's length nor which one is near.
   */
  accepts(request: IncomingMessage): boolean {
    const [value, ...others] = headerValues(request, 'authorization');
    const credentials = /^bearer +(.+)$/i.exec(value ?? '')?.[1] ?? '';
    // Node reads header bytes as Latin-1; a token is UTF-8.
    const digest = digestOf(Buffer.from(credentials, 'latin1'));
    const isCurrent = timingSafeEqual(digest, this.#current);
    const isPrevious = timingSafeEqual(digest, this.#previous);
    return this.#configured && others.length === 0 && (isCurrent || isPrevious);
  }
}
