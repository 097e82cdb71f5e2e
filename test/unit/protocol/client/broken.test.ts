import type { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { answerBytesMax } from '../../../../protocol/client/exchange.ts';
import type { Fetch } from '../../../../protocol/client.ts';
import { errorRow } from '../../../../protocol/errors.ts';
import {
  AnsweringServer,
  clientOf,
  key,
  onWholeRequest,
  request,
  result,
  say,
  someId,
  startRawServer,
} from './support/answering-server.ts';

const notSent = { kind: 'failed', code: 'not_sent', retry: 'later', operationId: undefined };
const head = `HTTP/1.1 200 OK\r\nOperation-Id: ${someId}\r\nContent-Length: 500\r\n\r\n`;
/** More than the buffers of two sockets hold. */
const large = { ...request, args: ['x'.repeat(16 * 1024 * 1024)] };

describe('a request that did not leave whole certainly had no effect', () => {
  test('when nothing listens', async () => {
    const server = await startRawServer((socket) => socket.destroy());
    const free = server.url.replace(/\d+$/, '1');
    expect(await clientOf(free).call('exec', request, key)).toMatchObject(notSent);
    expect(await clientOf(free).call('look', request)).toMatchObject({ kind: 'failed', code: 'not_sent' });
  });

  test('when there is no such host', async () => {
    expect(await clientOf('http://host.invalid').call('exec', request, key)).toMatchObject(notSent);
  });

  test('when the caller gave up before', async () => {
    const server = await AnsweringServer.start((response) => say(response, 200, {}));
    const outcome = await clientOf(server.url).call('exec', request, { ...key, signal: AbortSignal.abort() });
    expect(outcome).toMatchObject(notSent);
    expect(server.seen).toHaveLength(0);
  });

  test('when the caller gives up in the middle of it', async () => {
    const controller = new AbortController();
    const server = await startRawServer(() => controller.abort());
    expect(await clientOf(server.url).call('exec', large, { ...key, signal: controller.signal })).toMatchObject(
      notSent,
    );
    expect(server.connections()).toBe(1);
  });

  test('when the connection breaks in the middle of it', async () => {
    const server = await startRawServer((socket) => {
      socket.once('data', () => socket.resetAndDestroy());
      socket.resume();
    });
    expect(await clientOf(server.url).call('exec', large, key)).toMatchObject(notSent);
    expect(server.connections()).toBe(1);
  });

  test('when something in between refuses it unread', async () => {
    const server = await startRawServer((socket) => {
      socket.write('HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno!');
    });
    expect(await clientOf(server.url).call('exec', large, key)).toMatchObject(notSent);
  });

  test('and nothing of it gets out after that', async () => {
    let body: ReadableStream<Uint8Array> | undefined;
    const fetch: Fetch = async (_url, sent) => {
      body = sent.body;
      throw new Error('not now');
    };
    expect(await clientOf('http://runner', { fetch }).call('exec', request, key)).toMatchObject(notSent);
    await expect(body?.getReader().read()).rejects.toThrow('given up');
  });

  test('not even when the transport had taken its bytes, but had not learned that they were all', async () => {
    const reading = (reads: number): Fetch => {
      return async (_url, { body }) => {
        const reader = body.getReader();
        for (let at = 0; at < reads; at += 1) await reader.read();
        throw new Error('broken');
      };
    };
    const kind = async (reads: number) =>
      (await clientOf('http://runner', { fetch: reading(reads) }).call('exec', request, key)).kind;
    expect([await kind(0), await kind(1), await kind(2)]).toEqual(['failed', 'failed', 'uncertain']);
  });
});

describe('a request that left whole and has no whole answer is uncertain, and is not sent again', () => {
  test.each<[string, (socket: Socket) => void, object]>([
    ['the connection ends', (socket) => socket.end(), { why: 'no_answer' }],
    ['it is reset', (socket) => socket.resetAndDestroy(), { why: 'no_answer' }],
    ['half a status line', (socket) => socket.end('HTTP/1.1 2'), { why: 'no_answer' }],
    ['half a head', (socket) => socket.end(head.slice(0, 60)), { why: 'no_answer' }],
    ['no HTTP', (socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n'), { why: 'no_answer' }],
    ['the head alone', (socket) => socket.end(head), { why: 'answer_cut', operationId: someId }],
    ['half a body', (socket) => socket.end(`${head}{"exitCode":0`), { why: 'answer_cut', operationId: someId }],
    ['half a body, reset', (s) => s.write(`${head}{"a`, () => s.resetAndDestroy()), { kind: 'uncertain' }],
    [
      'a body without a length that is cut',
      (socket) => socket.end(`HTTP/1.1 200 OK\r\nOperation-Id: ${someId}\r\n\r\n{"exitCode":0`),
      { why: 'wrong_answer', operationId: someId },
    ],
  ])('%s', async (_, answer, expected) => {
    const server = await startRawServer((socket) => onWholeRequest(socket, () => answer(socket)));
    const before = Date.now();
    const outcome = await clientOf(server.url).call('exec', request, key);
    expect(outcome).toMatchObject({ kind: 'uncertain', operation: 'exec', user: 7, ...key, ...expected });
    if (outcome.kind === 'uncertain') expect(outcome.sentAt).toBeGreaterThanOrEqual(before);
    expect(server.connections()).toBe(1);
  });

  test('a read has no answer, and is not sent again either', async () => {
    const server = await startRawServer((socket) => onWholeRequest(socket, () => socket.destroy()));
    expect(await clientOf(server.url).call('look', request)).toEqual({ kind: 'no_answer', why: 'no_answer' });
    expect(server.connections()).toBe(1);
  });

  test('the connection was kept from an earlier request and ends with this one', async () => {
    let served = 0;
    const server = await startRawServer((socket) => {
      let before = 0;
      onWholeRequest(socket, () => {
        served += 1;
        before += 1;
        const body = JSON.stringify({ ...result, operationId: someId });
        if (before > 1) socket.destroy();
        else socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
      });
    });
    const client = clientOf(server.url);
    const kinds: string[] = [];
    // The transport may have opened another connection before the first was free again.
    while (!kinds.includes('uncertain') && kinds.length < 10)
      kinds.push((await client.call('exec', request, key)).kind);
    expect(kinds.at(-1)).toBe('uncertain');
    expect([served, server.connections()]).toEqual([kinds.length, kinds.length - 1]);
  });

  test('the answer does not come in time', async () => {
    const server = await startRawServer((socket) => onWholeRequest(socket, () => undefined));
    const outcome = await clientOf(server.url, { answerMs: 2_000 }).call('exec', request, key);
    expect(outcome).toMatchObject({ kind: 'uncertain', why: 'timed_out', operationId: undefined });
    expect(server.connections()).toBe(1);
  });

  test('the answer begins in time and does not end', async () => {
    const server = await startRawServer((socket) => onWholeRequest(socket, () => socket.write(head)));
    const outcome = await clientOf(server.url, { answerMs: 2_000 }).call('exec', request, key);
    expect(outcome).toMatchObject({ kind: 'uncertain', why: 'timed_out', operationId: someId });
  });

  test('the caller gives up', async () => {
    const controller = new AbortController();
    const server = await startRawServer((socket) => onWholeRequest(socket, () => controller.abort()));
    const outcome = await clientOf(server.url).call('exec', request, { ...key, signal: controller.signal });
    expect(outcome).toMatchObject({ kind: 'uncertain', why: 'aborted' });
  });

  test('the answer is endless', async () => {
    let written = 0;
    const server = await AnsweringServer.start((response) => {
      response.writeHead(200, { 'Operation-Id': someId });
      const more = (): void => {
        let room = true;
        while (room && !response.destroyed) {
          room = response.write(Buffer.alloc(65_536, 'x'));
          written += 65_536;
        }
      };
      response.on('drain', more);
      more();
    });
    const outcome = await clientOf(server.url).call('exec', request, key);
    expect(outcome).toMatchObject({ kind: 'uncertain', why: 'wrong_answer', operationId: someId });
    expect(written).toBeLessThan(2 * answerBytesMax);
  });

  test('it is text that is not UTF-8', async () => {
    const server = await AnsweringServer.start((response) => {
      const body = JSON.stringify({ ...result, stdout: 'AB', operationId: someId });
      response.writeHead(200).end(Buffer.from(body.replace('AB', '\u00ff'), 'latin1'));
    });
    expect(await clientOf(server.url).call('exec', request, key)).toMatchObject({ kind: 'uncertain' });
  });
});

describe('what fetch would send again by itself', () => {
  test('a request that a shard turned away', async () => {
    const body = { error: 'wrong_shard', message: errorRow('wrong_shard').text };
    const server = await AnsweringServer.start((response) => say(response, 421, body));
    await fetch(server.url, { method: 'POST', body: '{}' });
    expect(server.seen, 'the danger is real').toHaveLength(2);
    expect(await clientOf(server.url).call('exec', request, key)).toMatchObject({
      kind: 'failed',
      code: 'wrong_shard',
    });
    expect(server.seen).toHaveLength(3);
  });

  test.each([301, 302, 303, 307, 308])('a request that is redirected with %d', async (status) => {
    const elsewhere = await AnsweringServer.start((response) => say(response, 200, {}));
    const server = await AnsweringServer.start((response) => say(response, status, {}, { Location: elsewhere.url }));
    expect(await clientOf(server.url).call('exec', request, key)).toMatchObject({ kind: 'uncertain' });
    expect([server.seen.length, elsewhere.seen.length]).toEqual([1, 0]);
  });
});
