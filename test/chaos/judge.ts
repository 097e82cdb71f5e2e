/**
 * What must hold after every round, whatever happened in it. Nothing here asks the product's tables: what a code
 * means is restated.
 */
import type { Body, Evidence, Heard, LookUp } from './evidence.ts';
import type { ChaosRow } from './rows/row.ts';

type Answer = Extract<Heard, { came: 'answer' }>;

/** Nobody knows; all other codes say that this request had no effect. */
const uncertainCodes: readonly unknown[] = ['uncertain', 'kill_incomplete'];
/** A process that was prepared has ended with the link: what came too late for it had no effect. */
const tooLateCodes: readonly unknown[] = ['process_not_found', 'process_not_running'];
/** These speak of another operation, the one that has the key. */
const keyCodes: readonly unknown[] = ['operation_running', 'idempotency_conflict', 'operation_interrupted'];
/** A record whose operation was cut short. */
const cutShort = (status: Body): boolean =>
  status['state'] === 'interrupted' ||
  status['outcome'] === 'uncertain' ||
  String(status['outcome']).startsWith('killed_');
const isOk = (status: Body | undefined): boolean => status?.['state'] === 'finished' && status['outcome'] === 'ok';

const isAnswer = (heard: Heard): heard is Answer => heard.came === 'answer';
const isSuccess = (heard: Heard): heard is Answer => isAnswer(heard) && heard.status === 200;
const codeOf = (heard: Heard): unknown => (isAnswer(heard) ? heard.body['error'] : undefined);
const saysNotDone = (heard: Heard): boolean =>
  isAnswer(heard) && heard.status !== 200 && ![...uncertainCodes, ...keyCodes].includes(codeOf(heard));

/** Two answers are the same, but for being a replay; one without its outputs tells nothing else. */
const sameAnswer = (first: Body, again: Body): boolean => {
  const { replayed: _, ...rest } = again;
  if (rest['outputExpired'] === true) {
    // Some replies name their operation in the head alone.
    const told: Body = { operationId: rest['operationId'], ...first };
    return ['exitCode', 'timedOut', 'operationId'].every((field) => rest[field] === told[field]);
  }
  const { replayed: __, ...before } = first;
  return JSON.stringify(before) === JSON.stringify(rest);
};

/** A single answer that can't be right by itself. */
const oddities = (row: ChaosRow, heard: readonly Heard[]): string[] =>
  heard.filter(isAnswer).flatMap((answer) => {
    if (answer.status === 200) return row.succeeded(answer.body) ? [] : ['an answer 200 that is no success'];
    if (codeOf(answer) === 'internal') return ['an answer `internal`'];
    if (codeOf(answer) === 'uncertain' && typeof answer.body['operationId'] !== 'string')
      return ['an uncertain answer without an operation id'];
    return answer.status < 400 || answer.status > 503 ? [`an answer ${answer.status}`] : [];
  });

const lookUpProblems = ({ by, found }: LookUp, { effect, heard, plan }: Evidence): string[] => {
  const alone = plan.callers === 1;
  if (found === undefined) {
    const problems = heard.some((one) => isSuccess(one) && one.body['operationId'] === by)
      ? [`${by} was a success and is not found`]
      : [];
    return alone && effect.begun > 0 ? [...problems, `${by} is not found, and its effect is there`] : problems;
  }
  if (isOk(found))
    return effect.completed === 1 || plan.row.onProcess !== undefined
      ? []
      : [`${by} is told as a success that is not there`];
  if (found['state'] === 'running') return [`${by} is still running`];
  if (found['state'] === 'finished' && !cutShort(found) && alone && effect.begun > 0)
    return [`${by} is told as not done (${found['outcome']}), and its effect is there`];
  if (heard.some((one) => isSuccess(one) && one.body['operationId'] === by))
    return [`${by} was a success and is told otherwise`];
  return [];
};

const firstProblems = (evidence: Evidence): string[] => {
  const { heard, effect, plan, byKey } = evidence;
  const problems: string[] = [];
  if (heard.some(isSuccess) && effect.completed !== 1 && plan.row.onProcess === undefined)
    problems.push('a success that was none');
  if (heard.every(saysNotDone) && effect.begun > 0) problems.push('told as not done, and the effect is there');
  if (plan.key !== undefined && byKey?.found === undefined && effect.begun > 0)
    problems.push('the key is not found, and its effect is there');
  const [success, ...others] = heard.filter(isSuccess);
  if (success !== undefined && others.some(({ body }) => !sameAnswer(success.body, body)))
    problems.push('two callers with one key got different answers');
  if (heard.filter((one) => isSuccess(one) && !one.replayed).length > 1) problems.push('one key was done twice');
  return problems;
};

const againProblems = (evidence: Evidence): string[] => {
  const { heard, heardAgain, effect, byKey, byKeyAgain, effectAgain } = evidence;
  const { onProcess } = evidence.plan.row;
  const before = byKey?.found;
  const first = heard.find(isSuccess);
  const fresh = heardAgain.filter((one) => isSuccess(one) && !one.replayed);
  const problems: string[] = [];
  if (fresh.length > 1) problems.push('sent again under its key, it was done twice');
  if (fresh.length === 1 && (effect.begun > 0 || before !== undefined))
    problems.push('sent again under its key, it was done again');
  const tooLate = onProcess === 'prepared' && heardAgain.every((one) => tooLateCodes.includes(codeOf(one)));
  if (!tooLate && (heardAgain.some(saysNotDone) || heardAgain.some((one) => one.came === 'nothing')))
    problems.push('sent again under its key, it was refused or not answered');
  if (!tooLate && before === undefined && fresh.length !== 1)
    problems.push('the key was free, and it could not be done');
  const replays = heardAgain.filter((one): one is Answer => isSuccess(one) && one.replayed);
  const original = first ?? (fresh.find(isSuccess) as Answer | undefined);
  if (original !== undefined && replays.some(({ body }) => !sameAnswer(original.body, body)))
    problems.push('a replay differs from the first answer');
  if (isOk(before) && replays.length !== heardAgain.length) problems.push('a success was not replayed');
  if (before !== undefined && cutShort(before) && replays.length > 0) problems.push('what was cut short was replayed');
  if (heardAgain.some((one) => codeOf(one) === 'idempotency_conflict')) problems.push('its own key was a conflict');
  if (heardAgain.some(isSuccess) !== isOk(byKeyAgain?.found)) problems.push('the ledger says otherwise in the end');
  // One that was prepared may have ended, which `process.terminate` does not refuse.
  const mustBeThere = onProcess === undefined ? heardAgain.some(isSuccess) : onProcess === 'new' && fresh.length > 0;
  if (mustBeThere && effectAgain.completed !== 1) problems.push('a replayed success that was none');
  return problems;
};

/** Everything that is wrong with a round; empty when all holds. */
export const judge = (evidence: Evidence): string[] => {
  const { plan, struck, heard, heardAgain, lookUps, effect, effectAgain, overdue } = evidence;
  const problems = [...overdue, ...oddities(plan.row, [...heard, ...heardAgain]), ...firstProblems(evidence)];
  if (struck === undefined && plan.point !== 'moment')
    problems.push('the fault never happened: the round proves nothing');
  if (effectAgain.begun > 1 || effectAgain.completed > 1) problems.push('a second effect');
  if (plan.key === undefined && (effectAgain.begun !== effect.begun || effectAgain.completed !== effect.completed))
    problems.push('an effect after the recovery');
  for (const lookUp of lookUps) problems.push(...lookUpProblems(lookUp, evidence));
  if (plan.key !== undefined) problems.push(...againProblems(evidence));
  return problems;
};
