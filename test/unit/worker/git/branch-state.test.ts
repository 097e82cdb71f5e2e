import { describe, expect, it } from 'vitest';
import { isAt, isOtherName, lostTip, nextLostRef } from '../../../../worker/git/branch-state.ts';

const branch = 'chat/0f8fad5b-d9cb-469f-a165-70867728950e';
const [a, b, commit] = ['a'.repeat(40), 'b'.repeat(40), 'c'.repeat(40)];
const head = `refs/heads/${branch}`;
const lost = `refs/lost/${branch}`;
const line = (name: string, tip: string, worktree = '', target = ''): string =>
  `${name}\0${tip}\0${worktree}\0${target}\n`;

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
    ['in lines of another form', `${head} ${a}\n\0\n${head}\0${a}\0\n`, undefined],
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

describe('a branch that is another name', () => {
  it.each([
    ['of another branch', line(head, a, '', 'refs/heads/main'), true],
    ['of what is no branch', line(head, a, '', 'refs/tags/v1'), true],
    ['of one that a worktree has', line(head, a, '/w/x', 'refs/heads/main'), true],
    ['of nothing', line(head, a), false],
    ['beside a lost tip that is one', line(head, a) + line(`${lost}/1`, a, '', head), false],
    ['that only another branch is', line('refs/heads/chat/other', a, '', head), false],
    ['that is not there', '', false],
  ])('%s', (_what, branches, expected) => {
    expect(isOtherName(branches, branch)).toBe(expected);
  });
});

describe('a branch that was made', () => {
  const place = '/tmp/.git-workflow/tree';
  it.each([
    ['is at its commit, in the worktree', line(head, commit, `/w/u20007${place}`), true],
    ['is so beside others', line(`${lost}/1`, a) + line(head, commit, `/w/u20007${place}`), true],
    ['is at another commit', line(head, a, `/w/u20007${place}`), false],
    ['is in no worktree', line(head, commit), false],
    ['is in another worktree', line(head, commit, '/w/u20007/home/work/x'), false],
    ['is in a worktree above', line(head, commit, `/w/u20007${place}/x`), false],
    ['is another name', line(head, commit, `/w/u20007${place}`, 'refs/heads/main'), false],
    ['is not there', line('refs/heads/main', commit, `/w/u20007${place}`), false],
    ['is told by nothing', '', false],
  ])('%s', (_what, branches, expected) => {
    expect(isAt(branches, branch, commit, place)).toBe(expected);
  });
});
