import type { Answer, Client } from './http.ts';

interface Read {
  readonly data: string;
  readonly from: number;
  readonly next: number;
  readonly retainedFrom: number;
  readonly outputLost: boolean;
  readonly eof: boolean;
}

/** How a process ended, as the service tells it. */
export interface Termination {
  readonly reason: string;
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly endedAt: string;
  readonly maxRssBytes: number | null;
  readonly cpuMs: number | null;
}

interface Status {
  readonly state: string;
  readonly tty: boolean;
  readonly startedAt: string;
  readonly termination: Termination | null;
}

const ok = <T>({ status, text }: Answer): T => {
  if (status !== 200) throw new Error(`${status} ${text}`);
  return JSON.parse(text) as T;
};

/** One process of the service under test, and how far its output was read. */
export class TestProcess {
  readonly processId: string;
  /** All that was read of its standard output. */
  output = '';
  next = 0;
  readonly #client: Client;

  constructor(client: Client, processId: string) {
    this.#client = client;
    this.processId = processId;
  }

  /** Starts one in a workspace: that of a user's number, or one with a folder. */
  static async start(
    client: Client,
    workspace: number | string,
    tool: string,
    args: readonly string[],
    tty = false,
  ): Promise<TestProcess> {
    const answer = await client.post('/v1/process/start', { workspaceId: String(workspace), tool, args, tty });
    return new TestProcess(client, ok<{ processId: string }>(answer).processId);
  }

  ask(verb: string, more: Readonly<Record<string, unknown>> = {}): Promise<Answer> {
    return this.#client.post(`/v1/process/${verb}`, { processId: this.processId, ...more });
  }

  async status(): Promise<Status> {
    return ok(await this.ask('status'));
  }

  async read(more: Readonly<Record<string, unknown>> = {}): Promise<Read> {
    return ok(await this.ask('read', more));
  }

  async write(data: string, more: Readonly<Record<string, unknown>> = {}): Promise<void> {
    ok(await this.ask('write', { data, ...more }));
  }

  /** Reads on by `next` until this was said. */
  async said(text: string | RegExp, limitMs = 20_000): Promise<void> {
    const end = performance.now() + limitMs;
    const isSaid = (): boolean => (typeof text === 'string' ? this.output.includes(text) : text.test(this.output));
    while (!isSaid()) {
      const { data, next, eof } = await this.read({ from: this.next, waitMs: 1_000 });
      this.output += data;
      this.next = next;
      if ((eof || performance.now() > end) && !isSaid())
        throw new Error(`it has not said ${String(text)} but ${JSON.stringify(this.output.slice(-2_000))}`);
    }
  }

  /** Writes something, and reads on until this was said after it. */
  async answer(data: string, text: string | RegExp): Promise<void> {
    this.output = '';
    await this.write(data);
    await this.said(text);
  }

  /** Reads on to the end, and waits until it has ended. */
  async ended(limitMs = 20_000): Promise<Termination> {
    const end = performance.now() + limitMs;
    for (;;) {
      const { data, next, eof } = await this.read({ from: this.next, waitMs: 1_000 });
      this.output += data;
      this.next = next;
      const { termination } = eof ? await this.status() : { termination: null };
      if (termination !== null) return termination;
      if (performance.now() > end) throw new Error('it has not ended');
    }
  }
}
