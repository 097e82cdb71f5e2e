import { isUtf8 } from 'node:buffer';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Refusal } from '../protocol/errors.ts';
import { GrowingBuffer } from '../protocol/growing-buffer.ts';

/**
 * Reads the body of a request. Undefined when the client is gone before all of it came.
 * @throws Refusal `body_too_large`, as early as it is known; `bad_request` for an encoded body
 */
export const readBody = async (
  request: IncomingMessage,
  response: ServerResponse,
  bytesMax: number,
): Promise<Buffer | undefined> => {
  const { headers } = request;
  if (Number(headers['content-length'] ?? 0) > bytesMax) throw new Refusal('body_too_large');
  if ((headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity')
    throw new Refusal('bad_request', undefined, 'The request body must not be encoded.');
  // Only HTTP/1.1 knows the expectation; for any other than 100-continue the request did not get this far.
  if (headers.expect !== undefined && request.httpVersion === '1.1') response.writeContinue();
  return new Promise((resolve, reject) => {
    const body = new GrowingBuffer(bytesMax);
    const take = (chunk: Buffer): void => {
      const length = body.bytes.length + chunk.length;
      if (length <= bytesMax) {
        body.append(chunk);
        return;
      }
      request.off('data', take);
      reject(new Refusal('body_too_large'));
    };
    request.on('data', take);
    request.once('end', () => resolve(body.bytes));
    request.once('close', () => resolve(undefined));
    // A cut-off request is an 'error' and a 'close'.
    request.on('error', () => resolve(undefined));
  });
};

const notAnObject = () => new Refusal('bad_request', undefined, 'The request must be a JSON object.');

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    // The parser's message quotes the text.
    throw notAnObject();
  }
};

/**
 * The fields of a JSON object. Known ones that are null are left out: an optional field may be null, as if absent.
 * An unknown one stays whatever it is, to be refused.
 * @param known an object with the names of the fields that the request may have
 * @throws Refusal `bad_request`
 */
export const fieldsOf = (bytes: Buffer, known: object): Readonly<Record<string, unknown>> => {
  if (!isUtf8(bytes)) throw notAnObject();
  const value = parse(bytes.toString());
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw notAnObject();
  // fromEntries defines own properties: a "__proto__" stays a field, and is refused as an unknown one.
  return Object.fromEntries(
    Object.entries(value).filter(([name, field]) => field !== null || !Object.hasOwn(known, name)),
  );
};
