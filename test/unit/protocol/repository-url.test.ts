import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { project } from '../../../protocol/operations/repo-fields.ts';
import { parseRepositoryUrl } from '../../../protocol/repository-url.ts';

// Many rounds: on a busy machine they take long, and that is no failure.
vi.setConfig({ testTimeout: 120_000 });

describe('the URL of a repository', () => {
  it.each([
    ['https://git.example/group/proj', 'git.example', 'group__proj', 'https://git.example/group/proj.git'],
    ['https://git.example/group/proj.git', 'git.example', 'group__proj', 'https://git.example/group/proj.git'],
    ['https://git.example/a/b/c/d.git', 'git.example', 'a__b__c__d', 'https://git.example/a/b/c/d.git'],
    ['https://git.example:443/a/b', 'git.example', 'a__b', 'https://git.example:443/a/b.git'],
    ['https://git.example:8443/a/b', 'git.example:8443', 'a__b', 'https://git.example:8443/a/b.git'],
    ['https://127.0.0.1:8443/a/b', '127.0.0.1:8443', 'a__b', 'https://127.0.0.1:8443/a/b.git'],
    ['https://[::1]:8443/a/b', '[::1]:8443', 'a__b', 'https://[::1]:8443/a/b.git'],
    ['https://git.example/A-1/_b.c', 'git.example', 'A-1___b.c', 'https://git.example/A-1/_b.c.git'],
    ['https://git.example/a/b.git.git', 'git.example', 'a__b.git', 'https://git.example/a/b.git.git'],
    ['https://git.example/a/.b', 'git.example', 'a__.b', 'https://git.example/a/.b.git'],
    ['https://git.example/a/b.gitx', 'git.example', 'a__b.gitx', 'https://git.example/a/b.gitx.git'],
    // Well-formed, and refused later, by their scheme or host.
    ['http://git.example/a/b', 'git.example', 'a__b', 'http://git.example/a/b.git'],
    ['ssh://git.example/a/b', 'git.example', 'a__b', 'ssh://git.example/a/b.git'],
    ['HTTPS://git.example/a/b', 'git.example', 'a__b', 'HTTPS://git.example/a/b.git'],
    ['https://GIT.example/a/b', 'GIT.example', 'a__b', 'https://GIT.example/a/b.git'],
    ['https://git.example./a/b', 'git.example.', 'a__b', 'https://git.example./a/b.git'],
    ['https://git.example:0443/a/b', 'git.example:0443', 'a__b', 'https://git.example:0443/a/b.git'],
    ['file:///a/b', '', 'a__b', 'file:///a/b.git'],
  ])('%s is taken in its parts', (url, host, folder, href) => {
    expect(parseRepositoryUrl(url)).toStrictEqual({ scheme: url.split(':')[0], host, folder, href });
  });

  const bad: Readonly<Record<string, readonly string[]>> = {
    'is no URL': ['', 'a', 'a/b', '/a/b', '//git.example/a/b', 'git.example/a/b', 'git@git.example:a/b', 'https:/a/b'],
    'is given to a remote helper': ['ext::sh -c true/a/b', 'ext::https://git.example/a/b', 'https::https://h/a/b'],
    'looks like an option': [
      '--upload-pack=x',
      '-https://git.example/a/b',
      'https://git.example/-a/b',
      'https://h/a/-b',
    ],
    'names somebody': [
      'https://user@git.example/a/b',
      'https://user:token@git.example/a/b',
      'https://:@git.example/a/b',
      'https://@git.example/a/b',
      'https://git.example/a/b@c',
    ],
    'asks or points': ['https://h/a/b?', 'https://h/a/b?x=y', 'https://h/a/b#', 'https://h/a/b#c', 'https://h?/a/b'],
    'climbs, or could': [
      'https://../a/b',
      'https://h..example/a/b',
      'https://h/../a/b',
      'https://h/a/../b',
      'https://h/a/b/..',
      'https://h/a..b/c',
      'https://h/a/b...git',
      'https://h/a/b.',
      'https://h/a/b..git',
      'https://h/./a/b',
      'https://h/a/./b',
      'https://h/a/b/.',
    ],
    'is escaped': [
      'https://h/a%2fb/c',
      'https://h/%2e%2e/a/b',
      'https://h/a/b%00',
      'https://%68/a/b',
      'https://h/a/b%',
    ],
    'has white space or control characters': [
      ' https://h/a/b',
      'https://h/a/b ',
      'https://h/a b/c',
      'https://h/a/b\n',
      'https://h/a/b\n.git',
      'https://h\t/a/b',
      'https://h/a/b\r',
      'https://h/a/b\0',
      'https://h/a/\u007fb',
      '\ufeffhttps://h/a/b',
      'https://h/a\u00a0/b',
      'https://h/a\u2028/b',
    ],
    'has characters of other kinds': [
      'https://h/ä/b',
      'https://höst/a/b',
      'https://h/a/b\ud800',
      'https://h/a\\b/c',
      'https:\\\\h\\a\\b',
      'https://h/a/b;c',
      'https://h/a/b:c',
      'https://h/~a/b',
      'https://h/a/b+c',
      'https://h/a/[b]',
      'https://h。example/a/b',
    ],
    'has another form': [
      'https://h',
      'https://h/',
      'https://h/a',
      'https://h/a.git',
      'https://h//a/b',
      'https://h/a//b',
      'https://h/a/b/',
      'https://h/a/b.git/',
      'https://h/a/.git',
      'https://h/a/.git.git',
      'https://h/.git/a',
      'https://h/a/.git/b',
      'https://h/.a/b',
      'https://h/.git',
    ],
    'is too long': [`https://h/a/${'b'.repeat(2_037)}`, `https://h/a/${'b'.repeat(253)}`],
  };
  it.each(Object.entries(bad))('that %s is none', (_what, urls) => {
    for (const url of urls) expect(parseRepositoryUrl(url), JSON.stringify(url)).toBeUndefined();
  });

  it('has a folder of at most 255 characters', () => {
    expect(parseRepositoryUrl(`https://h/a/${'b'.repeat(252)}`)?.folder).toHaveLength(255);
    expect(parseRepositoryUrl(`https://h/a/${'b'.repeat(252)}.git`)?.folder).toHaveLength(255);
  });
});

const name = fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9_-]{0,12}$/);
const canonicalHost = fc.constantFrom('git.example', 'localhost', '127.0.0.1:8443', '[::1]:8443', 'h:1', 'a-b.c_d');
const goodUrl = fc
  .tuple(canonicalHost, fc.array(name, { minLength: 2, maxLength: 5 }), fc.constantFrom('', '.git'))
  .map(([host, parts, end]) => `https://${host}/${parts.join('/')}${end}`);

/** What is put between the pieces of a URL, or instead of one. */
const hostile = fc.oneof(
  fc.constantFrom('@', 'u:p@', ':', ':443', ':0', ':99999', '[', ']', '[::1]', '%2f', '%00', '%', '?', '#', '\\', '/'),
  fc.constantFrom(
    '.',
    '..',
    '.git',
    '-',
    '--x',
    ' ',
    '\t',
    '\n',
    '\r\n',
    '\0',
    '\u007f',
    '\ud800',
    'ä',
    '。',
    '\u202e',
  ),
  fc.constantFrom('https://', 'http://', 'file://', 'ext::', 'ssh://', '//', 'x'.repeat(300), 'x'.repeat(2100)),
  fc.string({ unit: 'binary', maxLength: 3 }),
);
const piece = fc.oneof({ weight: 3, arbitrary: name }, { weight: 1, arbitrary: hostile });
const hostileUrl = fc
  .tuple(
    fc.oneof({ weight: 6, arbitrary: fc.constant('https') }, piece),
    fc.constantFrom('://', '://', '://', '//', ':/', '::'),
    fc.oneof(
      { weight: 2, arbitrary: canonicalHost },
      fc.array(piece, { maxLength: 3 }).map((parts) => parts.join('')),
    ),
    fc.array(
      fc.array(piece, { minLength: 1, maxLength: 2 }).map((parts) => parts.join('')),
      { maxLength: 4 },
    ),
    fc.constantFrom('', '', '.git', '/', '?', '\n'),
  )
  .map(([scheme, slashes, host, parts, end]) => `${scheme}${slashes}${[host, ...parts].join('/')}${end}`);

describe('whatever is made up', () => {
  it('is taken when it is of the form, and the parser of browsers says the same of it', () => {
    fc.assert(
      fc.property(goodUrl, (url) => {
        const parsed = parseRepositoryUrl(url);
        if (parsed === undefined) throw new Error('a good one was refused');
        const { protocol, host, pathname } = new URL(parsed.href);
        const path = url.slice('https://'.length + parsed.host.length).replace(/(\.git)?$/, '.git');
        expect([protocol, host, pathname]).toStrictEqual(['https:', parsed.host, path]);
      }),
      { seed: 6, numRuns: 2000 },
    );
  });

  it('is otherwise refused, or holds nothing but what is safe', () => {
    const seen = { taken: 0, refused: 0 };
    fc.assert(
      fc.property(hostileUrl, (url) => {
        const parsed = parseRepositoryUrl(url);
        seen[parsed === undefined ? 'refused' : 'taken'] += 1;
        if (parsed === undefined) return;
        const { scheme, host, folder, href } = parsed;
        expect(href).toMatch(/^[a-zA-Z][a-zA-Z0-9+.-]*:\/\/[a-zA-Z0-9.:[\]_-]*(\/[a-zA-Z0-9._][a-zA-Z0-9._-]*)+\.git$/);
        expect(href.startsWith(`${scheme}://`)).toBe(true);
        expect(href).not.toContain('..');
        // What git gets is what was checked: checking it again changes nothing.
        expect(parseRepositoryUrl(href)).toStrictEqual(parsed);
        expect(url.startsWith(href.slice(0, -'.git'.length))).toBe(true);
        expect(href.slice(`${scheme}://`.length).startsWith(host)).toBe(true);
        expect(project.safeParse(folder).success).toBe(true);
        expect(folder).not.toMatch(/[/\0]/);
      }),
      { seed: 66, numRuns: 20_000 },
    );
    expect(seen.taken).toBeGreaterThan(500);
    expect(seen.refused).toBeGreaterThan(1000);
  });

  it('is read by the parser of browsers as the same host and path, and as nobody', () => {
    let compared = 0;
    fc.assert(
      fc.property(hostileUrl, (url) => {
        const parsed = parseRepositoryUrl(url);
        // Without a host it is at none of the list.
        if (parsed?.scheme !== 'https' || parsed.host === '' || !URL.canParse(parsed.href)) return;
        const { host, pathname, username, password, search, hash } = new URL(parsed.href);
        expect([username, password, search, hash]).toStrictEqual(['', '', '', '']);
        expect(`${parsed.href.split('/').slice(0, 3).join('/')}${pathname}`).toBe(parsed.href);
        // Only what is written in another form than a list has it: in capitals, as a number, with a port of zeros.
        if (parsed.host !== host) expect(parsed.host).toMatch(/[A-Z]|^[0-9.]+(:\d+)?$|:(0\d*)?$|^\[/);
        else compared += 1;
      }),
      { seed: 666, numRuns: 20_000 },
    );
    expect(compared).toBeGreaterThan(300);
  });
});
