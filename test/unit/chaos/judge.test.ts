import { describe, expect, it } from 'vitest';
import type { Evidence, Heard } from '../../chaos/evidence.ts';
import { judge } from '../../chaos/judge.ts';
import { planRound } from '../../chaos/plan.ts';
import { strikes } from '../../chaos/points.ts';
import { execRows } from '../../chaos/rows/exec.ts';

const [exec] = execRows;
if (exec === undefined) throw new Error('no row');
const operationId = '01a22c9b-50ac-752b-8cd7-0b94b055d0f1';
const success = { exitCode: 0, timedOut: false, stdout: 'x\n', operationId };
const answer = (status: number, body: object, replayed = false): Heard => ({
  came: 'answer',
  status,
  replayed,
  body: { ...body, ...(replayed ? { replayed: true } : {}) },
});
const refusal = (status: number, error: string): Heard => answer(status, { error, operationId });
const ok = { by: operationId, found: { operationId, state: 'finished', outcome: 'ok' } };
const cutShort = { by: operationId, found: { operationId, state: 'interrupted', outcome: null } };
const notFound = { by: operationId, found: undefined };
const none = { begun: 0, completed: 0 };
const part = { begun: 1, completed: 0 };
const whole = { begun: 1, completed: 1 };

/** A round that went well: an answer, its record, its effect, a replay. */
const good: Evidence = {
  plan: { ...planRound(1, 0), row: exec, point: 'reply-sent', fault: 'cut', key: 'k', callers: 1, callersAgain: 1 },
  struck: { pid: 1, operationId },
  heard: [answer(200, success)],
  lookUps: [ok],
  byKey: ok,
  effect: whole,
  heardAgain: [answer(200, success, true)],
  byKeyAgain: ok,
  effectAgain: whole,
  overdue: [],
  recoveryMs: 1,
};
/** One whose operation was cut short in the middle of its effect. */
const cut: Evidence = {
  ...good,
  heard: [refusal(502, 'uncertain')],
  lookUps: [cutShort],
  byKey: cutShort,
  effect: part,
  heardAgain: [refusal(409, 'operation_interrupted')],
  byKeyAgain: cutShort,
  effectAgain: part,
};
/** One that was never begun, and was done when it was sent again. */
const free: Evidence = {
  ...good,
  heard: [refusal(503, 'worker_unavailable')],
  lookUps: [notFound],
  byKey: notFound,
  effect: none,
  heardAgain: [answer(200, success)],
};
const keyless = { ...good.plan, key: undefined, callersAgain: 0 };

describe('what holds', () => {
  it.each([
    ['a success', good],
    ['one that was cut short', cut],
    ['one that never began', free],
    ['a success that nobody heard of', { ...good, heard: [{ came: 'nothing', code: 'ECONNRESET' } as const] }],
  ])('is not complained about: %s', (_, evidence) => {
    expect(judge(evidence)).toStrictEqual([]);
  });
});

describe('what does not hold', () => {
  it.each<[string, Evidence]>([
    ['the fault never happened', { ...good, struck: undefined }],
    ['a success without its effect', { ...good, effect: none, effectAgain: none }],
    ['a success with a part of it', { ...good, effect: part, effectAgain: part }],
    ['told as not done, and done in part', { ...free, effect: part }],
    ['a second effect', { ...good, effectAgain: { begun: 2, completed: 2 } }],
    ['a second effect of which nothing was told', { ...cut, effectAgain: { begun: 2, completed: 1 } }],
    ['an effect that comes later', { ...cut, plan: keyless, heardAgain: [], effect: none, effectAgain: whole }],
    ['not found, and the effect is there', { ...cut, lookUps: [notFound] }],
    ['its key is not found, and the effect is there', { ...cut, byKey: notFound }],
    ['recorded as a success that is not there', { ...cut, lookUps: [ok] }],
    [
      'recorded as not done, and the effect is there',
      { ...cut, lookUps: [{ by: operationId, found: { state: 'finished', outcome: 'worker_unavailable' } }] },
    ],
    ['a success that is recorded as cut short', { ...good, lookUps: [cutShort] }],
    ['still running', { ...cut, lookUps: [{ by: operationId, found: { state: 'running', outcome: null } }] }],
    ['a replay that differs', { ...good, heardAgain: [answer(200, { ...success, stdout: 'y\n' }, true)] }],
    ['a replay of what was cut short', { ...cut, heardAgain: [answer(200, success, true)] }],
    ['a success that is not replayed', { ...good, heardAgain: [refusal(409, 'operation_interrupted')] }],
    ['done again under its key', { ...good, heardAgain: [answer(200, success)] }],
    ['done twice by those who send it again', { ...free, heardAgain: [answer(200, success), answer(200, success)] }],
    ['its own key is a conflict', { ...good, heardAgain: [refusal(409, 'idempotency_conflict')] }],
    ['an unforeseen failure', { ...cut, heard: [refusal(500, 'internal')] }],
    ['uncertain without an id', { ...cut, heard: [answer(502, { error: 'uncertain' })] }],
    ['a tool that failed', { ...cut, heard: [answer(200, { ...success, exitCode: -1 })] }],
    ['something overdue', { ...good, overdue: ['the recovery'] }],
  ])('is complained about: %s', (_, evidence) => {
    expect(judge(evidence)).not.toStrictEqual([]);
  });
});

describe('a plan', () => {
  it('is the same for the same seed and number', () => {
    expect(planRound(5, 77)).toStrictEqual(planRound(5, 77));
    expect(planRound(5, 77).canary).not.toBe(planRound(6, 77).canary);
  });

  it('strikes in every way within one turn', () => {
    const struck = strikes.map((_, round) => `${planRound(9, round).point} ${planRound(9, round).fault}`);
    expect(new Set(struck).size).toBe(strikes.length);
  });
});
