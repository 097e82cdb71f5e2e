import { expect, it } from 'vitest';
import { answerBytesMax, answersBytesMax, answersRetainMs } from '../../../../protocol/limits.ts';
import { Answers, type KeptAnswer } from '../../../../worker/ledger/answers.ts';

const answerOf = (bytes: number): KeptAnswer => ({
  outcome: { ok: true, result: { exitCode: 0 }, streams: { stdout: { bytes, cut: false } } },
  streams: new Map([['stdout', Buffer.alloc(bytes)]]),
});

it('keeps an answer for a while', () => {
  let now = 0;
  const answers = new Answers(() => now);
  const answer = answerOf(10);
  answers.keep('a', answer);
  now = answersRetainMs - 1;
  expect(answers.get('a')).toMatchObject(answer);
  expect(answers.get('b')).toBeUndefined();
  now = answersRetainMs;
  expect(answers.get('a')).toBeUndefined();
});

it('keeps no more than its limit altogether, the latest', () => {
  const answers = new Answers(() => 0);
  const each = answerBytesMax / 2;
  const count = Math.ceil((2 * answersBytesMax) / each);
  for (let index = 0; index < count; index += 1) answers.keep(String(index), answerOf(each));
  const kept = Array.from({ length: count }, (_, index) => answers.get(String(index))).filter(Boolean);
  expect(kept.length).toBeLessThanOrEqual(answersBytesMax / each);
  expect(kept.length).toBeGreaterThan(1);
  expect(answers.get(String(count - 1))).toBeDefined();
});

it('counts answers without outputs too', () => {
  const answers = new Answers(() => 0);
  for (let index = 0; index < 20_000; index += 1) answers.keep(String(index), answerOf(0));
  expect(answers.get('0')).toBeUndefined();
  expect(answers.get('19999')).toBeDefined();
});

it('does not keep one that is too large', () => {
  const answers = new Answers(() => 0);
  answers.keep('a', answerOf(answerBytesMax));
  expect(answers.get('a')).toBeUndefined();
});
