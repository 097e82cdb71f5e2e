import { get, type IncomingMessage } from 'node:http';
import type { TestProcess } from './process-client.ts';
import { type Service, token } from './service.ts';

/** One Server-Sent Event of a process. */
export interface SentEvent {
  readonly event: string;
  readonly id: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Opens a process's stream of events on a connection of its own; resolves with the head of the answer. */
export const openEvents = (
  service: Service,
  { processId }: Pick<TestProcess, 'processId'>,
  query = '',
  headers: Readonly<Record<string, string>> = {},
): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    get(
      {
        host: '127.0.0.1',
        port: service.port,
        path: `/v1/process/stream?processId=${processId}${query}`,
        headers: { authorization: `Bearer ${token}`, ...headers },
        agent: false,
      },
      resolve,
    ).on('error', reject);
  });

/** Reads events until one fits, or the end; the connection is then dropped. */
export const eventsOf = async (
  response: IncomingMessage,
  last: (event: SentEvent) => boolean = () => false,
): Promise<SentEvent[]> => {
  const seen: SentEvent[] = [];
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) {
    text += chunk as string;
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const [, event, id, data] = /^event: (\w+)\nid: (\S+)\ndata: (.*)$/.exec(text.slice(0, end)) ?? [];
      text = text.slice(end + 2);
      if (event === undefined || id === undefined || data === undefined) continue;
      seen.push({ event, id, data: JSON.parse(data) as SentEvent['data'] });
      if (last(seen.at(-1) as SentEvent)) return seen;
    }
  }
  return seen;
};

/** All that events tell of one stream, a character for each byte. */
export const textOf = (seen: readonly SentEvent[], stream: 'stdout' | 'stderr'): string =>
  seen
    .filter(({ event, data }) => event === 'output' && data['stream'] === stream)
    .map(({ data }) => Buffer.from(String(data['data']), data['encoding'] as BufferEncoding).toString('latin1'))
    .join('');
