import { describe, expect, it } from 'vitest';
import type { Evidence, Heard } from '../../chaos/evidence.ts';
import { judge } from '../../chaos/judge.ts';
import { planRound } from '../../chaos/plan.ts';
import { strikes } from '../../chaos/points.ts';
import { execRows } from '../../chaos/rows/exec.ts';
import { inputRows, startRows } from '../../chaos/rows/processes.ts';

const [[exec], [start], [input]] = [execRows, startRows, inputRows];
if (exec === undefined || start === undefined || input === undefined) throw new Error('no row');
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
/** A process that was started, and ended with the link before it had an effect. */
const started: Evidence = {
  ...good,
  plan: { ...good.plan, row: start },
  heard: [answer(200, { dispatchStatus: 'started', operationId })],
  effect: none,
  heardAgain: [answer(200, { dispatchStatus: 'started', operationId }, true)],
  effectAgain: none,
};
/** Input that never came to its process, which had ended when it was sent again. */
const late: Evidence = {
  ...free,
  plan: { ...good.plan, row: input },
  heardAgain: [refusal(404, 'process_not_found')],
  byKeyAgain: notFound,
  effectAgain: none,
};
const keyless = { ...good.plan, key: undefined, callersAgain: 0 };

describe('what holds', () => {
  it.each([
    ['a success', good],
    ['one that was cut short', cut],
    ['one that never began', free],
    ['a process that ended with the link', started],
    ['input that came too late', late],
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
    ['a process that is started again', { ...started, heardAgain: [answer(200, { dispatchStatus: 'started' })] }],
    ['a second effect of a process', { ...started, effectAgain: { begun: 2, completed: 2 } }],
    [
      'one that is started when the key was free, and does nothing',
      { ...started, heard: free.heard, lookUps: [notFound], byKey: notFound, heardAgain: started.heard },
    ],
    ['input that is told as too late, and is there', { ...late, effect: whole, effectAgain: whole }],
    ['input that is told as too late, and comes', { ...late, effectAgain: { begun: 2, completed: 2 } }],
    ['an exec that is told as too late', { ...late, plan: good.plan }],
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
