import { Agent, request } from 'node:http';

/** The fields that answers have, as far as tests look at them one by one. */
export interface AnswerBody {
  readonly error?: string;
  readonly message?: string;
  readonly operationId?: string;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly exitCode?: number;
  readonly stdout?: string;
  readonly stderr?: string;
  readonly truncated?: boolean;
  readonly timedOut?: boolean;
  readonly durationMs?: number;
  readonly signal?: string | null;
  readonly replayed?: true;
  readonly outputExpired?: true;
  readonly state?: string;
  readonly outcome?: string | null;
  readonly ok?: boolean;
  readonly folder?: string;
  readonly branch?: string;
  readonly commit?: string | null;
  readonly workspaceId?: string;
}

/** An answer, read to its end. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** The parsed body; empty when there is none. */
  readonly body: AnswerBody;
}

/** A plain HTTP client of the service, with keep-alive. */
export class Client {
  readonly #port: number;
  readonly #token: string;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 128 });

  constructor(port: number, token: string) {
    this.#port = port;
    this.#token = token;
  }

  get(path: string): Promise<Answer> {
    return this.send('GET', path, undefined, {});
  }

  post(path: string, body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    return this.send('POST', path, JSON.stringify(body), { authorization: `Bearer ${this.#token}`, ...headers });
  }

  send(
    method: string,
    path: string,
    body: string | Buffer | undefined,
    headers: Readonly<Record<string, string>>,
  ): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
      const sent = request(
        { host: '127.0.0.1', port: this.#port, method, path, agent: this.#agent, headers: { ...length, ...headers } },
        (response) => {
          const chunks: Buffer[] = [];
          response.on('data', (chunk: Buffer) => chunks.push(chunk));
          response.on('error', reject);
          response.on('end', () => {
            const text = Buffer.concat(chunks).toString();
            const isJson = response.headers['content-type']?.startsWith('application/json');
            const parsed = (isJson && text !== '' ? JSON.parse(text) : {}) as AnswerBody;
            resolve({ status: response.statusCode ?? 0, headers: response.headers, text, body: parsed });
          });
        },
      );
      sent.on('error', reject);
      sent.end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}
