import { expect, it } from 'vitest';
import { type GitCommand, GitCommands, trackingRef } from '../../../../worker/git/commands.ts';

const git = new GitCommands('/w/u20007');
const scratch = '/w/u20007/tmp/.git-workflow';
const url = 'https://git.example/group/proj.git';
const commit = 'c'.repeat(40);
const branch = 'chat/0f8fad5b-d9cb-469f-a165-70867728950e';
const project = 'group__proj';
const fetchOptions = [
  '--quiet',
  '--no-tags',
  '--no-prune',
  '--no-recurse-submodules',
  '--no-auto-maintenance',
  '--no-write-fetch-head',
];
const inClone = { directory: 'repos/group__proj', runsPrograms: false };
const inHome = { directory: '', runsPrograms: false };

/** Every command by hand. One that is new has to be put down here too. */
const restated: Readonly<
  Record<Exclude<keyof GitCommands, number>, readonly [made: GitCommand, expected: GitCommand]>
> = {
  clone: [
    git.clone(url),
    {
      ...inHome,
      args: [
        '-C',
        `${scratch}`,
        'clone',
        '--quiet',
        '--depth=1',
        '--single-branch',
        '--no-tags',
        '--no-recurse-submodules',
        '--no-checkout',
        '--template=',
        '--origin=origin',
        url,
        'tree',
      ],
    },
  ],
  headOfClone: [
    git.headOfClone(),
    { ...inHome, args: ['-C', `${scratch}/tree`, 'rev-parse', '--quiet', '--verify', 'HEAD^{commit}'] },
  ],
  checkOut: [
    git.checkOut(),
    { ...inHome, args: ['-C', `${scratch}/tree`, 'read-tree', '--reset', '-u', '--no-recurse-submodules', 'HEAD'] },
  ],
  configurationOf: [
    git.configurationOf(project),
    {
      ...inClone,
      args: [
        '--git-dir=.git',
        'config',
        '--file=.git/config',
        '--no-includes',
        '--null',
        '--get-regexp',
        '^(remote\\.origin\\.url|extensions\\.objectformat)$',
      ],
    },
  ],
  fetch: [
    git.fetch(url, 'main'),
    {
      ...inHome,
      args: [
        '-C',
        scratch,
        '--git-dir=clean.git',
        'fetch',
        '--depth=1',
        ...fetchOptions,
        url,
        '+refs/heads/main:refs/heads/base',
      ],
    },
  ],
  fetchedCommit: [
    git.fetchedCommit(),
    {
      ...inHome,
      args: ['-C', scratch, '--git-dir=clean.git', 'rev-parse', '--quiet', '--verify', 'refs/heads/base^{commit}'],
    },
  ],
  takeOver: [
    git.takeOver(project),
    {
      ...inClone,
      args: ['--git-dir=.git', 'fetch', '--update-shallow', ...fetchOptions, `${scratch}/clean.git`, 'refs/heads/base'],
      runsPrograms: true,
    },
  ],
  hasCommit: [
    git.hasCommit(project, commit),
    { ...inClone, args: ['--git-dir=.git', 'rev-parse', '--quiet', '--verify', `${commit}^{commit}`] },
  ],
  track: [
    git.track(project, 'main', commit),
    { ...inClone, args: ['--git-dir=.git', 'update-ref', 'refs/remotes/origin/main', commit] },
  ],
  prune: [git.prune(project), { ...inClone, args: ['--git-dir=.git', 'worktree', 'prune', '--expire=1.day.ago'] }],
  branches: [
    git.branches(project, branch),
    {
      ...inClone,
      args: [
        '--git-dir=.git',
        'for-each-ref',
        '--format=%(refname)%00%(objectname)%00%(worktreepath)%00%(symref)',
        `refs/heads/${branch}`,
        `refs/lost/${branch}`,
      ],
    },
  ],
  removeOtherName: [
    git.removeOtherName(project, branch),
    { ...inClone, args: ['--git-dir=.git', 'symbolic-ref', '--delete', `refs/heads/${branch}`] },
  ],
  keepTip: [
    git.keepTip(project, `refs/lost/${branch}/1`, commit),
    { ...inClone, args: ['--git-dir=.git', 'update-ref', `refs/lost/${branch}/1`, commit, ''] },
  ],
  addWorktree: [
    git.addWorktree(project, branch, commit),
    {
      ...inClone,
      args: ['--git-dir=.git', 'worktree', 'add', '--quiet', '--no-track', '-B', branch, `${scratch}/tree`, commit],
      runsPrograms: true,
    },
  ],
  currentBranch: [
    git.currentBranch('work/x/group__proj'),
    { directory: 'work/x/group__proj', runsPrograms: false, args: ['symbolic-ref', '--quiet', 'HEAD'] },
  ],
  tipOf: [
    git.tipOf('work/x/group__proj', branch),
    {
      directory: 'work/x/group__proj',
      runsPrograms: false,
      args: ['rev-parse', '--quiet', '--verify', `refs/heads/${branch}^{commit}`],
    },
  ],
  gather: [
    git.gather(commit),
    {
      ...inHome,
      args: [
        '-C',
        scratch,
        '--git-dir=clean.git',
        'fetch',
        '--update-shallow',
        ...fetchOptions,
        `${scratch}/borrowed.git`,
        `${commit}:refs/heads/base`,
      ],
    },
  ],
  push: [
    git.push(url, commit, branch),
    {
      ...inHome,
      args: [
        '-C',
        scratch,
        '--git-dir=clean.git',
        'push',
        '--porcelain',
        '--no-verify',
        '--no-follow-tags',
        '--recurse-submodules=no',
        url,
        `${commit}:refs/heads/${branch}`,
      ],
    },
  ],
};

it.each(Object.entries(restated))('%s is as restated', (_name, [made, expected]) => {
  expect(made).toStrictEqual(expected);
});

it('has no command that is not restated', () => {
  const methods = Object.getOwnPropertyNames(GitCommands.prototype).filter((name) => name !== 'constructor');
  expect(methods.sort()).toStrictEqual(Object.keys(restated).sort());
});

it('pushes one full ref, by its name at both ends or a commit, without force, tags or a deletion', () => {
  const { args } = git.push(url, commit, branch);
  const options = args.slice(args.indexOf('push') + 1, -2);
  expect(options.filter((option) => !option.startsWith('--'))).toStrictEqual([]);
  for (const word of ['force', 'delete', 'mirror', 'all', 'tags', 'prune', 'push-option', 'set-upstream'])
    expect(
      options.filter((option) => option.startsWith(`--${word}`)),
      word,
    ).toStrictEqual([]);
  expect(args.at(-1)).toMatch(/^[0-9a-f]{40}:refs\/heads\/chat\/[0-9a-f-]{36}$/);
  expect(args.at(-2)).toBe(url);
});

it('names a base branch by its full ref, so that it is no option, whatever it is called', () => {
  expect(trackingRef('x')).toBe('refs/remotes/origin/x');
  for (const { args } of [git.fetch(url, '-x'), git.track(project, '-x', commit), git.branches(project, '-x')])
    expect(args).not.toContain('-x');
});
