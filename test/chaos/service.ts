import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { allProcesses, treeOf } from '../support/processes.ts';
import { root, Service } from '../support/service.ts';
import { homeOf } from '../support/user.ts';
import { eventually } from '../support/wait.ts';
import { Control } from './control.ts';
import type { RoundPlan } from './plan.ts';
import type { Fault, Strike } from './points.ts';
import { strikerOf } from './points.ts';
import { Upstream } from './upstream.ts';

/** A part that somebody has to start again. */
type Mortal = 'gateway' | 'worker' | 'spawner';

/** A part that a round kills, as it was before. */
interface Condemned {
  readonly part: Mortal;
  readonly pid: number;
}

/**
 * Init waits longer each time a part of it dies young (100, 200, 400 ms …), and so does the worker with its spawner.
 * Rather than to wait, the whole service is stopped and started again after so many deaths, on the same folder:
 * all that it has promised before still holds.
 */
const deathsMax = 4;
/** Between two looks at a service that recovers, ms: it needs the processors more. */
const askAgainMs = 25;
/** A start takes no longer than this, ms. */
const startMaxMs = 60_000;
const usersEach = 100;
/** Another harness, or a test, at the same time has other users: a service ends what it finds of its users at its start. */
const firstUserOfItsOwn = 820_000;
const firstUser = 700_000 + 1_000 * (process.pid % 100);

/** What dies by a fault at a point. */
const victimsOf = ({ point, fault }: Strike): readonly Mortal[] => {
  if (fault === 'kill') {
    const striker = strikerOf(point);
    if (striker === 'gateway' || striker === 'worker') return [striker];
    return point.startsWith('spawner') ? ['spawner'] : [];
  }
  if (fault === 'kill-worker-and-spawner') return ['worker'];
  const victim = /^kill-(gateway|worker|spawner)$/.exec(fault)?.[1];
  return victim === undefined ? [] : [victim as Mortal];
};

/** One service that lives through many rounds, on one folder. */
export class ChaosService {
  readonly control: Control;
  readonly #index: number;
  readonly #folder: string;
  #service: Service | undefined;
  /** The parts that this round kills. */
  #condemned: readonly Condemned[] = [];
  /** Of a service that was killed as a whole: all that was beneath it. */
  #killed: readonly number[] = [];
  #deaths: Record<Mortal, number> = { gateway: 0, worker: 0, spawner: 0 };

  private constructor(index: number) {
    this.#index = index;
    this.#folder = mkdtempSync('/tmp/runner-chaos-');
    // Users pass through to their spaces beneath it.
    chmodSync(this.#folder, 0o711);
    mkdirSync(join(this.#folder, 'run'), { mode: 0o750 });
    for (const name of ['control', 'cache']) {
      mkdirSync(join(this.#folder, name));
      // The gateway's user writes there too.
      chmodSync(join(this.#folder, name), 0o777);
    }
    this.control = new Control(join(this.#folder, 'control'));
  }

  /** @param index tells it from others that live at the same time: they must not share users */
  static async start(index: number): Promise<ChaosService> {
    const service = new ChaosService(index);
    try {
      await service.#start();
      return service;
    } catch (error) {
      await service.stop();
      throw error;
    }
  }

  /** The service as it lives now. */
  get now(): Service {
    if (this.#service === undefined) throw new Error('there is no service');
    return this.#service;
  }

  userOf({ round, row }: RoundPlan): number {
    if (row.userOfItsOwn) return firstUserOfItsOwn + (round % 50_000);
    return firstUser + this.#index * usersEach + (round % usersEach);
  }

  homeOf(user: number): string {
    return homeOf(this.now, user);
  }

  /** Makes sure that what dies by this will be there again soon. */
  async expect(strike: Strike): Promise<void> {
    const victims = victimsOf(strike);
    if (victims.some((victim) => this.#deaths[victim] >= deathsMax)) await this.#renew();
    for (const victim of victims) this.#deaths[victim] += 1;
    this.#condemned = victims.map((part) => ({ part, pid: this.now.part(part).pid }));
    // A spawner's successor starts with its worker.
    if (victims.includes('worker')) this.#deaths.spawner = 0;
  }

  /** Signals a part. */
  signal(fault: Fault, supervisor: number | undefined): void {
    const pid = (part: Mortal | 'init'): number => this.now.part(part).pid;
    if (fault === 'cut-gateway' || fault === 'cut-worker')
      process.kill(pid(fault === 'cut-gateway' ? 'gateway' : 'worker'), 'SIGUSR2');
    else if (fault === 'kill-supervisor') process.kill(supervisor ?? Number.NaN, 'SIGKILL');
    else if (fault === 'kill-worker-and-spawner') {
      const both = [pid('worker'), pid('spawner')];
      // Neither sees the other one die.
      for (const one of both) process.kill(one, 'SIGSTOP');
      for (const one of both) process.kill(one, 'SIGKILL');
    } else if (fault === 'kill-all') {
      this.#killed = treeOf(this.now.process.pid ?? -1).map((process) => process.pid);
      process.kill(pid('init'), 'SIGKILL');
    } else for (const part of victimsOf({ point: 'moment', fault })) process.kill(pid(part), 'SIGKILL');
  }

  /** After the whole service was killed: waits until nothing of it is left, and starts another on its folder. */
  async startAfterKill(): Promise<void> {
    await this.now.exited;
    await eventually(
      'nothing of a killed service is left',
      () => allProcesses().every(({ pid, state }) => !this.#killed.includes(pid) || state === 'Z'),
      15_000,
    );
    this.now.client.close();
    await this.#start();
  }

  /** Waits until what died is there again, and probes would see the service as up. */
  async recovered(limitMs: number): Promise<void> {
    const { client } = this.now;
    const isBack = ({ part, pid }: Condemned): boolean => {
      try {
        return this.now.part(part).pid !== pid;
      } catch {
        return false;
      }
    };
    const healthy = async (): Promise<boolean> => {
      // In this order: right after a death the gateway may not know of it yet.
      const back = this.#condemned.every(isBack);
      const answer = back ? await client.get('/healthz').catch(() => undefined) : undefined;
      return answer?.status === 204 || delay(askAgainMs, false);
    };
    await eventually('healthz 204', healthy, limitMs);
  }

  /** Stops it and removes its folder. */
  async stop(): Promise<void> {
    try {
      await this.now.stop();
    } finally {
      rmSync(this.#folder, { recursive: true, force: true });
    }
  }

  async #renew(): Promise<void> {
    await this.now.stop();
    await this.#start();
  }

  async #start(): Promise<void> {
    this.#deaths = { gateway: 0, worker: 0, spawner: 0 };
    this.#condemned = [];
    this.#service = await Service.launch({
      folder: this.#folder,
      program: `${root}/test/chaos/start.ts`,
      settings: {
        CHAOS_FOLDER: join(this.#folder, 'control'),
        NODE_COMPILE_CACHE: join(this.#folder, 'cache'),
        RUNNER_TOOLS: 'sh=/bin/sh',
        RUNNER_ALLOWED_GIT_HOSTS: Upstream.now.host,
        RUNNER_EXEC_TIMEOUT_SEC: '20',
        // A round is over when no process of its user is left.
        RUNNER_HELPERS_IDLE_SEC: '1',
      },
    });
    await this.#service.healthy(startMaxMs);
  }
}
