import { describe, expect, it } from 'vitest';
import { lostTip, nextLostRef } from '../../../../worker/git/lost-tips.ts';

const branch = 'chat/0f8fad5b-d9cb-469f-a165-70867728950e';
const [a, b, commit] = ['a'.repeat(40), 'b'.repeat(40), 'c'.repeat(40)];
const head = `refs/heads/${branch}`;
const lost = `refs/lost/${branch}`;
const line = (name: string, tip: string, worktree = ''): string => `${name}\0${tip}\0${worktree}\n`;

describe('the tip that a branch loses', () => {
  it.each([
    ['of a branch that is not there', '', undefined],
    ['of one that no worktree has', line(head, a), a],
    ['of one that a worktree has', line(head, a, '/w/u20007/home/work/x'), undefined],
    ['of one that is at that commit', line(head, commit), undefined],
    ['of one beside other lost ones', line(`${lost}/1`, b) + line(head, a), a],
    ['that is kept already', line(head, a) + line(`${lost}/1`, b) + line(`${lost}/2`, a), undefined],
    ['that is kept already under no number', line(head, a) + line(`${lost}/x`, a), undefined],
    ['that another branch has lost too', line(head, a) + line('refs/lost/chat/other/1', a), a],
    ['of which there are only lost ones', line(`${lost}/1`, b), undefined],
    ['of a branch that only begins so', line(`${head}/x`, a), undefined],
    ['of another conversation', line('refs/heads/chat/other', a), undefined],
    ['of a tag', line(`refs/tags/${branch}`, a), undefined],
    ['in lines of another form', `${head} ${a}\n\0\n`, undefined],
  ])('%s', (_what, branches, expected) => {
    expect(lostTip(branches, branch, commit)).toBe(expected);
  });
});

describe('the ref that is to keep the next one', () => {
  const kept = (...numbers: readonly (number | string)[]): string =>
    numbers.map((number) => line(`${lost}/${number}`, b)).join('');
  it.each([
    ['the first', '', 1],
    ['one more than the highest', kept(1, 2, 3), 4],
    ['in whatever order', kept(10, 9, 2), 11],
    ['with a hole', kept(7), 8],
    ['beside what is no number', kept('x', '01', '-1', '1e3', '1/2', '0', ''), 1],
    ['beside numbers without end', kept('9'.repeat(10), '9'.repeat(400)), 1],
    ['at the end of the numbers', kept('9'.repeat(9)), 1_000_000_000],
    ['beside another branch’s', line('refs/lost/chat/other/5', b), 1],
  ])('%s', (_what, others, number) => {
    for (const branches of [others, line(head, a) + others, others + line(head, a, '/w/u20007/home/work/x')])
      expect(nextLostRef(branches, branch)).toBe(`${lost}/${number}`);
  });
});
