import { describe, expect, it } from 'vitest';
import { freeLostRef, heldTip } from '../../../../worker/git/lost-tips.ts';

const branch = 'chat/0f8fad5b-d9cb-469f-a165-70867728950e';
const [a, b] = ['a'.repeat(40), 'b'.repeat(40)];
const line = (name: string, tip: string, worktree = ''): string => `${name}\0${tip}\0${worktree}\n`;

describe('the tip of a branch', () => {
  it.each([
    ['that is not there', '', undefined],
    ['that no worktree has', line(`refs/heads/${branch}`, a), a],
    ['that a worktree has', line(`refs/heads/${branch}`, a, '/w/u20007/home/work/x'), undefined],
    ['beside lost ones', line(`refs/lost/${branch}/1`, b) + line(`refs/heads/${branch}`, a), a],
    ['of which there are only lost ones', line(`refs/lost/${branch}/1`, b), undefined],
    ['that only begins so', line(`refs/heads/${branch}/x`, a), undefined],
    ['of another conversation', line('refs/heads/chat/other', a), undefined],
    ['that is a tag', line(`refs/tags/${branch}`, a), undefined],
    ['in lines of another form', `refs/heads/${branch} ${a}\n\0\n`, undefined],
  ])('%s', (_what, branches, expected) => {
    expect(heldTip(branches, branch)).toBe(expected);
  });
});

describe('the next name of a lost tip', () => {
  const lost = (...numbers: readonly (number | string)[]): string =>
    numbers.map((number) => line(`refs/lost/${branch}/${number}`, a)).join('');
  it.each([
    ['the first', '', 1],
    ['beside the branch alone', line(`refs/heads/${branch}`, a), 1],
    ['one more than the highest', lost(1, 2, 3), 4],
    ['in whatever order', lost(10, 9, 2), 11],
    ['with a hole', lost(7), 8],
    ['beside what is no number', lost('x', '01', '-1', '1e3', '1/2', '0', ''), 1],
    ['beside numbers without end', lost('9'.repeat(10), '9'.repeat(400)), 1],
    ['at the end of the numbers', lost('9'.repeat(9)), 1_000_000_000],
    ['beside another branch’s', line('refs/lost/chat/other/5', a), 1],
  ])('%s', (_what, branches, number) => {
    expect(freeLostRef(branches, branch)).toBe(`refs/lost/${branch}/${number}`);
  });
});
