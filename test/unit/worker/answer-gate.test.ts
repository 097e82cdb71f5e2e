import { expect, it } from 'vitest';
import { AnswerGate } from '../../../worker/answer-gate.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

it('lets one answer in at once, and each further one in a turn of its own, in their order', async () => {
  const gate = new AnswerGate(() => false);
  const entered: number[] = [];
  for (const number of [0, 1, 2]) void gate.enter().then(() => entered.push(number));
  await Promise.resolve();
  expect(entered).toEqual([0]);
  await turn();
  expect(entered).toEqual([0, 1]);
  await turn();
  await turn();
  expect(entered).toEqual([0, 1, 2]);
});

it('lets none in while the link is full, and goes on when it is told that there is room', async () => {
  let full = true;
  const gate = new AnswerGate(() => full);
  const entered: number[] = [];
  for (const number of [0, 1]) void gate.enter().then(() => entered.push(number));
  await turn();
  await turn();
  expect(entered).toEqual([]);
  full = false;
  gate.open();
  await Promise.resolve();
  expect(entered).toEqual([0]);
  full = true;
  await turn();
  await turn();
  expect(entered).toEqual([0]);
  full = false;
  gate.open();
  await turn();
  expect(entered).toEqual([0, 1]);
});
