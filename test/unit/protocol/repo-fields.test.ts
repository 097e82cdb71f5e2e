import { describe, expect, it } from 'vitest';
import { check } from '../../../protocol/check.ts';
import { Refusal } from '../../../protocol/errors.ts';
import { operations } from '../../../protocol/operations/index.ts';
import { lowerCaseUuid, project } from '../../../protocol/operations/repo-fields.ts';

const uuid = '0f8fad5b-d9cb-469f-a165-70867728950e';
const good = {
  'repo.clone': { user: 7, url: 'https://git.example/group/proj.git' },
  'repo.worktree': { user: 7, project: 'group__proj', conversation: uuid, baseBranch: 'main' },
  'repo.push': { user: 7, project: 'group__proj', conversation: uuid },
  'repo.agent_worktree': { user: 7, project: 'group__proj', id: uuid, baseBranch: 'main' },
  'repo.agent_push': { user: 7, project: 'group__proj', id: uuid },
} as const;
const names = Object.keys(good) as (keyof typeof good)[];

/** What comes of a request: it is taken, or refused with a code. */
const outcomeOf = (name: keyof typeof good, change: object): string => {
  try {
    check(operations[name].params, { ...good[name], ...change });
    return 'taken';
  } catch (error) {
    if (error instanceof Refusal) return error.code;
    throw error;
  }
};

describe.each(names)('%s', (name) => {
  it('takes a good request as it is, and no field more', () => {
    const request = { ...good[name], env: ['TOKEN=x'] };
    expect(check(operations[name].params, request)).toStrictEqual(request);
    for (const field of ['args', 'branch', 'remote', 'refspec', 'force', 'depth', 'folder', 'dir'])
      expect(outcomeOf(name, { [field]: 'x' }), field).toBe('bad_request');
  });

  it('refuses each field that is not what it must be, with the code of that field', () => {
    const wrong: Readonly<Record<string, readonly [unknown, string]>> = {
      url: ['https://user@git.example/a/b', 'bad_url'],
      project: ['../x', 'bad_name'],
      conversation: [uuid.toUpperCase(), 'bad_name'],
      id: ['x', 'bad_name'],
      baseBranch: ['--mirror', 'bad_name'],
    };
    for (const field of Object.keys(good[name]).filter((key) => key !== 'user')) {
      const [value, code] = wrong[field] ?? [];
      expect(outcomeOf(name, { [field]: value }), field).toBe(code);
      for (const other of [7, {}, ['x'], undefined, '\ud800'])
        expect(outcomeOf(name, { [field]: other }), `${field} ${String(other)}`).toMatch(/^bad_(request|name|url)$/);
      expect(outcomeOf(name, { [field]: 7 }), field).toBe('bad_request');
    }
    expect(outcomeOf(name, { user: -1 })).toBe('bad_request');
    expect(outcomeOf(name, { env: ['GIT_DIR=/x'] })).toBe('bad_env');
    expect(outcomeOf(name, { env: ['no entry'] })).toBe('bad_request');
  });

  it('has the tools’ time limit for all of it, and what is counted before and cleared after', () => {
    const pushes = name.endsWith('push');
    expect(operations[name].timeLimitMs({ execMs: 1234, fileMs: 5, resetMs: 7 })).toBe((pushes ? 0 : 30_000) + 1239);
  });
});

describe('a project', () => {
  const folders = ['group__proj', 'a', '_', '0', 'a.b-c_d', 'a.', 'a__.b', 'A'.repeat(255)];
  it.each(folders)('can be called %s', (value) => {
    expect(project.safeParse(value).success).toBe(true);
  });
  const none = [
    '',
    '.',
    '..',
    '.git',
    '-a',
    'a/b',
    'a..b',
    '../a',
    'a b',
    'a\n',
    '\na',
    'a\0',
    'ä',
    'a\\b',
    'a:b',
    '~',
  ];
  it.each([...none, 'a'.repeat(256)])('can’t be called %j', (value) => {
    expect(project.safeParse(value).success).toBe(false);
  });
});

describe('a conversation', () => {
  it.each([
    [uuid, true],
    ['00000000-0000-0000-0000-000000000000', true],
    [uuid.toUpperCase(), false],
    [`${uuid}\n`, false],
    [`${uuid}/../x`, false],
    [`{${uuid}}`, false],
    [uuid.replaceAll('-', ''), false],
    [uuid.replace('0', 'g'), false],
    [uuid.replace('0', '０'), false],
    ['', false],
  ])('%j: %s', (value, taken) => {
    expect(lowerCaseUuid.safeParse(value).success).toBe(taken);
  });
});
