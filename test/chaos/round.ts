import { setTimeout as delay } from 'node:timers/promises';
import { processesOf } from '../support/processes.ts';
import { uidOf } from '../support/user.ts';
import { eventually } from '../support/wait.ts';
import { Caller } from './caller.ts';
import type { Struck } from './control.ts';
import type { Evidence, Heard, LookUp } from './evidence.ts';
import type { RoundPlan } from './plan.ts';
import { strikerOf } from './points.ts';
import type { ChaosRow, EffectPlace } from './rows/row.ts';
import type { ChaosService } from './service.ts';
import { Traced } from './traced.ts';

/** The service answers again within this after a fault, ms. */
const recoveryMaxMs = 45_000;
/** Nothing of the user's run is left within this after that, ms. */
const goneMaxMs = 20_000;
/** The fault happens within this after the last answer, or not at all, ms. */
const blowMaxMs = 10_000;
/** No caller waits longer than this, ms. */
const answerMaxMs = 60_000;

/** A round that is over. */
export interface FinishedRound {
  readonly evidence: Evidence;
  /** Where its effect is, so that it can be looked at again much later. */
  readonly place: EffectPlace;
}

/** The parent of the first of a user's processes. */
const supervisorOf = (user: number): number | undefined => {
  const all = processesOf(uidOf(user)).filter(({ uids }) => uids[0] === uidOf(user));
  return all.find(({ parent }) => all.every(({ pid }) => pid !== parent))?.parent;
};

/** Sends the request as its callers would, and strikes. */
const strikeWhile = async (
  service: ChaosService,
  plan: RoundPlan,
  { place, mark }: { readonly place: EffectPlace; readonly mark: string },
  send: () => Promise<Heard[]>,
): Promise<{ heard: readonly Heard[]; struck: Struck | undefined }> => {
  const { point, fault, row, round } = plan;
  const struck: Struck = { pid: 0, operationId: undefined };
  switch (strikerOf(point)) {
    case 'gateway':
    case 'worker': {
      service.control.give({ point, fault, round, canary: mark });
      const heard = await send();
      // A caller may have the answer before the blow that follows it.
      const done = await eventually('the blow', () => service.control.struck(round), blowMaxMs).catch(() => undefined);
      service.control.withdraw();
      return { heard, struck: done };
    }
    case 'strace': {
      const traced = await Traced.at(service.now.part('spawner').pid, point);
      try {
        // One blow: what is started afterwards is left alone.
        const blow = traced.killed(answerMaxMs).then(async (pid) => {
          await traced.end();
          return pid;
        });
        const heard = await send();
        const pid = await Promise.race([blow, delay(blowMaxMs, undefined)]);
        return { heard, struck: pid === undefined ? undefined : { ...struck, pid } };
      } finally {
        await traced.end();
      }
    }
    case 'harness': {
      if (point === 'unlinked') {
        service.signal(fault, undefined);
        return { heard: await send(), struck };
      }
      const answers = send();
      if (point === 'moment') await delay(plan.delayMs);
      else await eventually('the effect has begun', () => row.effect(place).begun > 0, answerMaxMs);
      service.signal(fault, fault === 'kill-supervisor' ? supervisorOf(place.user) : undefined);
      return { heard: await answers, struck };
    }
  }
};

/** Makes what is to be changed. */
const prepare = async (caller: Caller, row: ChaosRow, target: EffectPlace): Promise<EffectPlace> => {
  const before = row.prepare?.(target);
  if (before === undefined) return target;
  const made = await caller.persist(before.route, before.body, {});
  if (made.came !== 'answer' || made.status !== 200) throw new Error(`not prepared: ${JSON.stringify(made)}`);
  const place = { ...target, prepared: made.body };
  await eventually('what is to be changed is ready', () => row.ready?.(place) ?? true);
  return place;
};

/** Carries a round out and gathers what is known afterwards. */
export const runRound = async (service: ChaosService, plan: RoundPlan): Promise<FinishedRound> => {
  const { row, key, canary, callers, callersAgain, point } = plan;
  await service.expect(plan);
  const user = service.userOf(plan);
  const overdue: string[] = [];
  const inTime = async (what: string, wait: Promise<unknown>): Promise<void> => {
    await wait.catch((error: unknown) => overdue.push(`${what}: ${error instanceof Error ? error.message : error}`));
  };

  const caller = new Caller(service.now.port);
  const place = await prepare(caller, row, { user, home: service.homeOf(user), canary });
  const body = row.body(place, point === 'begun');
  const mark = row.mark?.(place) ?? canary;
  const headers = { 'chaos-canary': mark, ...(key === undefined ? {} : { 'idempotency-key': key }) };
  const send = (): Promise<Heard[]> =>
    Promise.all(
      Array.from({ length: callers }, () =>
        Promise.race([
          caller.send(row.route, body, headers),
          delay(answerMaxMs, { came: 'nothing', code: 'no answer in time' } as const, { ref: false }),
        ]),
      ),
    );
  const { heard, struck } = await strikeWhile(service, plan, { place, mark }, send);
  if (heard.some((one) => one.came === 'nothing' && one.code === 'no answer in time')) overdue.push('an answer');

  const struckAt = performance.now();
  if (plan.fault === 'kill-all') await inTime('another service', service.startAfterKill());
  await inTime('the recovery', service.recovered(recoveryMaxMs));
  const recoveryMs = Math.round(performance.now() - struckAt);
  const after = new Caller(service.now.port);
  const left = row.release?.(place);
  if (left !== undefined) await after.persist(left.route, left.body, {});
  await inTime(
    'the end of the user’s processes',
    eventually('no process of the user', () => processesOf(uidOf(user)).length === 0, goneMaxMs),
  );

  const ids = new Set([...heard.map((one) => one.came === 'answer' && one.body['operationId']), struck?.operationId]);
  const lookUps: LookUp[] = [];
  for (const operationId of ids) {
    if (typeof operationId === 'string') lookUps.push(await after.lookUp({ operationId }, operationId));
  }
  const lookUpKey = async () =>
    key === undefined ? undefined : await after.lookUp({ user, idempotencyKey: key }, key);
  const byKey = await lookUpKey();
  const effect = row.effect(place);

  const again = (): Promise<Heard> => after.persist(row.route, row.body(place, point === 'begun'), headers);
  const heardAgain = await Promise.all(Array.from({ length: callersAgain }, again));
  if (callersAgain > 0) heardAgain.push(await again());
  // A process that was started goes on after its answer.
  if (row.onProcess === 'new' && heardAgain.some((one) => one.came === 'answer' && one.status === 200 && !one.replayed))
    await inTime(
      'the effect',
      eventually('it is complete', () => row.effect(place).completed > 0, goneMaxMs),
    );
  const byKeyAgain = await lookUpKey();
  const effectAgain = row.effect(place);
  const evidence: Evidence = {
    plan,
    struck,
    heard,
    lookUps,
    byKey,
    effect,
    heardAgain,
    byKeyAgain,
    effectAgain,
    overdue,
    recoveryMs,
  };
  return { evidence, place };
};
