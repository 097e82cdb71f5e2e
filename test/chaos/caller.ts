import { Client } from '../support/http.ts';
import { token } from '../support/service.ts';
import { eventually } from '../support/wait.ts';
import type { Body, Heard, LookUp } from './evidence.ts';

/** Codes that a caller answers with patience: of a service that is only just back, or of a call that is under way. */
const later: readonly unknown[] = ['worker_unavailable', 'operation_running', 'busy'];
const patienceMs = 30_000;

/** A caller of the service. Each of its requests has a connection of its own: none is lost with somebody else's. */
export class Caller {
  readonly #port: number;

  constructor(port: number) {
    this.#port = port;
  }

  /** Sends a request once. */
  async send(route: string, body: Body, headers: Readonly<Record<string, string>>): Promise<Heard> {
    const client = new Client(this.#port, token);
    try {
      const { status, headers: fields, body: answer } = await client.post(route, body, headers);
      const replayed = fields['idempotency-replayed'] === 'true';
      return { came: 'answer', status, replayed, body: answer as Body };
    } catch (error) {
      return { came: 'nothing', code: (error as NodeJS.ErrnoException).code ?? 'unknown' };
    } finally {
      client.close();
    }
  }

  /** Sends it until it is neither in the way of another one nor early. */
  async persist(route: string, body: Body, headers: Readonly<Record<string, string>>): Promise<Heard> {
    let last: Heard = { came: 'nothing', code: 'never sent' };
    const settled = async (): Promise<boolean> => {
      last = await this.send(route, body, headers);
      return !(last.came === 'answer' && later.includes(last.body['error']));
    };
    await eventually('an answer that is not "later"', settled, patienceMs).catch(() => undefined);
    return last;
  }

  /** Looks an operation up until it does not run any more. */
  async lookUp(by: Readonly<Record<string, unknown>>, name: string): Promise<LookUp> {
    let found: Body | undefined;
    const settled = async (): Promise<boolean> => {
      const heard = await this.send('/v1/operation/status', by, {});
      if (heard.came === 'nothing') return false;
      if (heard.status === 404 && heard.body['error'] === 'operation_not_found') {
        found = undefined;
        return true;
      }
      found = heard.body;
      return heard.status === 200 && found['state'] !== 'running';
    };
    // What still runs, or can't be looked up, is found as that, and judged.
    await eventually('a settled state', settled, patienceMs).catch(() => undefined);
    return { by: name, found };
  }
}
